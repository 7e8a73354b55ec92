//! Accounts as data: organizations, users, products, agreements, licences, clients, orders
//! (Spec §2 User to Device). No database, no clock, no HTTP.

mod agreement;
mod client;
mod device;
mod ids;
mod money;
mod order;
mod organization;
mod scope;
mod user;

pub use agreement::{Agreement, AgreementType, Prepaids, Product};
pub use client::{Client, Grant};
pub use device::{Device, DeviceKind};
pub use ids::{AgreementId, FamilyId, OrderId, OrganizationId, ProductId, UserId};
pub use money::{Money, MoneyError};
pub use order::{License, Order, OrderAgreement, OrderStatus, Period};
pub use organization::{Address, Addresses, Organization};
pub use scope::{Scope, ScopeError, Scopes};
pub use user::{Access, Account, Phone, ROLE_MEDIEBANK, ROLE_OFP, ROLE_PROVIDER, User};
