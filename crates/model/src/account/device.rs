//! Mobile devices that receive push messages (contract users-7).

use strum::{EnumIter, EnumString, IntoStaticStr, VariantNames};

/// The push service that reaches a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumIter, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum DeviceKind {
    /// An iPhone or iPad, through Apple's production environment.
    Ios,
    /// An iPhone or iPad, through Apple's sandbox for developers.
    IosSandbox,
    Android,
}

crate::impl_as_str!(DeviceKind);

/// A mobile device of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The push service's token for the device; unique among all users.
    pub token: String,
    /// The push service that reaches the device.
    pub kind: DeviceKind,
    /// The name that the user gave the device.
    pub name: Option<String>,
    pub model: String,
}
