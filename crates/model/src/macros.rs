//! Implementations that many small types share.

/// Adds `as_str` to enums that derive [`strum::IntoStaticStr`].
#[macro_export]
macro_rules! impl_as_str {
    ($($Enum:ty),+) => {$(
        impl $Enum {
            /// Returns the word for the value, in documents, requests, settings, logs and the database.
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }
    )+};
}
