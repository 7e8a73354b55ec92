//! Mobile devices that receive push messages (contract users-7).

/// The push service that reaches a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// An iPhone or iPad, through Apple's production environment.
    Ios,
    /// An iPhone or iPad, through Apple's sandbox for developers.
    IosSandbox,
    Android,
}

impl DeviceKind {
    /// Every kind of device.
    pub const ALL: [Self; 3] = [Self::Ios, Self::IosSandbox, Self::Android];

    /// Returns the name used in requests and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ios => "ios",
            Self::IosSandbox => "ios-sandbox",
            Self::Android => "android",
        }
    }

    /// Finds the kind with that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

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
