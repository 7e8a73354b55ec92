//! Accounts as data: organizations, users, products, agreements, licences, clients, orders,
//! channels, deliveries, notifications. No database, no clock, no HTTP.

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

pub use agreement::{Agreement, AgreementType, Approver, Prepaids, Product};
pub use channel::{Channel, ChannelId, ChannelIdError, ChannelMethod, ChannelSettings};
pub use client::{Client, Grant};
pub use delivery::{Delivery, DeliveryState, shorten_reason};
pub use device::{Device, DeviceKind};
pub use ids::{AgreementId, FamilyId, OrderId, OrganizationId, ProductId, UserId};
pub use money::{Money, MoneyError};
pub use notification::{
    Lane, Message, MessageContent, MessageState, Notification, NotificationKind, Question, Way,
};
pub use order::{License, Order, OrderAgreement, OrderStatus, Period};
pub use organization::{Address, Addresses, Organization};
pub use password_link::PasswordLinkKind;
pub use permission::Permission;
pub use scope::{Scope, ScopeError, Scopes};
pub use user::{Access, Account, Phone, ROLE_MEDIEBANK, ROLE_OFP, ROLE_PROVIDER, User};
