//! Mobile devices that push messages go to (contract users-7).

/// Which service of which maker reaches a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// An iPhone or iPad, through the production environment.
    Ios,
    /// One through the sandbox that its maker offers to developers.
    IosSandbox,
    /// An Android device.
    Android,
}

impl DeviceKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Ios, Self::IosSandbox, Self::Android];

    /// The name in requests and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ios => "ios",
            Self::IosSandbox => "ios-sandbox",
            Self::Android => "android",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// A mobile device of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// What its maker's service knows it by; unique among all users.
    pub token: String,
    /// How it is reached.
    pub kind: DeviceKind,
    /// What its user calls it.
    pub name: Option<String>,
    /// Its model.
    pub model: String,
}
