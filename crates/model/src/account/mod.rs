//! The account types: organizations, users, products, agreements, licences, clients, orders, channels, deliveries,
//! notifications. They use no database, no clock and no HTTP.

pub mod accounts_file;
mod agreement;
mod channel;
mod client;
mod delivery;
mod device;
mod ids;
mod money;
mod notification;
mod order;
mod organization;
mod password_link;
mod permission;
mod scope;
mod user;

pub use agreement::{Agreement, AgreementType, Approver, PrepaidDownloads, Product};
pub use channel::{Channel, ChannelId, ChannelIdError, ChannelMethod, ChannelSettings};
pub use client::{GrantType, OAuthClient};
pub use delivery::{Delivery, DeliveryState, shorten_reason};
pub use device::{Device, DeviceKind};
pub use ids::{AgreementId, FamilyId, OrderId, OrganizationId, ProductId, UserId};
pub use money::{Money, MoneyError};
pub use notification::{
    MessageContent, MessageState, MessageTransport, Notification, NotificationKind,
    NotificationMethod, OutboxMessage, SavedQuery,
};
pub use order::{License, LicensePeriod, Order, OrderAgreement, OrderStatus};
pub use organization::{Organization, OrganizationAddresses, PostalAddress};
pub use password_link::PasswordLinkKind;
pub use permission::Permission;
pub use scope::{Scope, ScopeError, ScopeSet};
pub use user::{
    AccessLevels, Account, PhoneNumbers, ROLE_MEDIEBANK, ROLE_OFP, ROLE_OPERATOR, ROLE_PROVIDER,
    User,
};
