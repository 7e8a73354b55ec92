//! Defines the constants of the cosine transforms: weights in fixed point, and shifts. [`crate::dct`] explains them.

/// The weights of a pair of inputs, times 2¹³.
pub(super) type Weights = [i16; 2];

/// Number of fraction bits of the constants.
pub(super) const FRACTION_BITS: u32 = 13;
/// Right shift of the first direction: it keeps two extra bits.
pub(super) const FIRST_SHIFT: u32 = FRACTION_BITS - 2;
/// Right shift of the inverse's second direction: it removes the two extra bits and the factor 8.
pub(super) const LAST_SHIFT_INVERSE: u32 = FRACTION_BITS + 2 + 3;
/// Right shift of the forward transform's second direction; the factor 8 stays.
pub(super) const LAST_SHIFT_FORWARD: u32 = FRACTION_BITS + 2;

// Each name states the value of its constant, such as 0.298631336; the test of these constants has the cosines.
pub(super) const F_0_298: i16 = 2446;
pub(super) const F_0_390: i16 = 3196;
pub(super) const F_0_541: i16 = 4433;
pub(super) const F_0_765: i16 = 6270;
pub(super) const F_0_899: i16 = 7373;
pub(super) const F_1_175: i16 = 9633;
pub(super) const F_1_501: i16 = 12299;
pub(super) const F_1_847: i16 = 15137;
pub(super) const F_1_961: i16 = 16069;
pub(super) const F_2_053: i16 = 16819;
pub(super) const F_2_562: i16 = 20995;
pub(super) const F_3_072: i16 = 25172;

/// Even half, pair (2, 6) of the inverse: the weights of the part added to the sum of 0 and 4.
pub(super) const EVEN_WITH_SUM: Weights = [F_0_541 + F_0_765, F_0_541];
/// Even half, pair (2, 6) of the inverse: the weights of the part added to the difference of 0 and 4.
pub(super) const EVEN_WITH_DIFFERENCE: Weights = [F_0_541, F_0_541 - F_1_847];
/// Odd half, weights of `z` in results 0 and 2.
pub(super) const ODD_Z_0_2: Weights = [F_1_175 - F_1_961, F_1_175];
/// Odd half, weights of `z` in results 1 and 3.
pub(super) const ODD_Z_1_3: Weights = [F_1_175, F_1_175 - F_0_390];
/// Odd half, weights of `a` in result 0.
pub(super) const ODD_A_0: Weights = [F_0_298 - F_0_899, -F_0_899];
/// Odd half, weights of `a` in result 3.
pub(super) const ODD_A_3: Weights = [-F_0_899, F_1_501 - F_0_899];
/// Odd half, weights of `b` in result 2.
pub(super) const ODD_B_2: Weights = [F_3_072 - F_2_562, -F_2_562];
/// Odd half, weights of `b` in result 1.
pub(super) const ODD_B_1: Weights = [-F_2_562, F_2_053 - F_2_562];
