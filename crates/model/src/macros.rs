//! Implementations that many small types share.

/// Adds `as_str` to enums that derive [`strum::IntoStaticStr`].
#[macro_export]
macro_rules! impl_as_str {
    ($($Enum:ty),+) => {$(
        impl $Enum {
            /// Returns the word for the value in documents, requests and the database.
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }
    )+};
}

/// Serializes a type as the text that `Display` prints, and reads it with `FromStr`.
macro_rules! impl_serde_as_text {
    ($Type:ty) => {
        impl serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $Type {
            fn deserialize<D>(deserializer: D) -> Result<Self, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use impl_serde_as_text;
