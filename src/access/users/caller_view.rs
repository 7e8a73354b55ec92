//! Views of the caller's agreements, devices, keys and logins for clients (contract users-2, users-7, users-17).

use jiff::Timestamp;

use crate::access::auth::browser_name;
use crate::storage::database::{ListedApplication, ListedKey, ListedSession};
use api::user::{
    Application, DeprecatedAgreement, DeprecatedAgreementProduct, DeprecatedAgreementType, Key,
    Session,
};
use model::account::{Agreement, AgreementType, Device};

/// Creates the view of an agreement in the form of the deprecated endpoint (contract users-2), which cannot express
/// the type `Prepaid`.
pub fn deprecated_agreement(agreement: &Agreement) -> DeprecatedAgreement {
    let kind = match agreement.kind {
        AgreementType::Subscription => Some(DeprecatedAgreementType::Subscription),
        AgreementType::Direct => Some(DeprecatedAgreementType::Direct),
        AgreementType::Normal => Some(DeprecatedAgreementType::Normal),
        AgreementType::Prepaid => None,
    };
    let products = agreement.products.iter().map(|product| DeprecatedAgreementProduct {
        name: product.name.clone(),
        description: product.description.clone(),
        code: product.code.clone(),
    });
    DeprecatedAgreement {
        id: agreement.id.0,
        description: agreement.description.clone(),
        kind,
        is_super_agreement: agreement.super_agreement,
        products: products.collect(),
    }
}

/// Creates the view of a device with the time of its last registration.
pub fn device(device: Device, registered: Timestamp) -> api::user::Device {
    let Device { token, kind, name, model } = device;
    api::user::Device { token, kind, name, model, registered }
}

/// Creates the view of a key without its secret.
pub fn key(key: ListedKey) -> Key {
    let ListedKey { id, name, created, used, read_only, .. } = key;
    Key { id, name, created, used, read_only }
}

/// Creates the view of a browser session.
pub fn session(session: ListedSession) -> Session {
    Session {
        id: session.name,
        browser: session.browser.as_deref().map(browser_name),
        address: session.address,
        created: session.auth_time,
        used: session.used,
        expires: session.expires,
    }
}

/// Creates the view of an application that may act for the caller.
pub fn application(application: ListedApplication) -> Application {
    Application {
        client_id: application.client_id,
        name: application.name,
        scopes: application.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
        since: application.since,
        used: application.used,
    }
}
