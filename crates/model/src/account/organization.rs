//! Organizations, the customers of the agency (contract users-3).

use serde::{Deserialize, Serialize};

use super::OrganizationId;
use super::accounts_file::{SingleLineText, object};

/// A postal or visiting address; every part may be missing.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PostalAddress {
    pub street: Option<SingleLineText>,
    pub r#box: Option<SingleLineText>,
    pub zip_code: Option<SingleLineText>,
    pub city: Option<SingleLineText>,
    pub country: Option<SingleLineText>,
}

/// The addresses of an organization, by purpose.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrganizationAddresses {
    #[serde(default, deserialize_with = "object")]
    pub visit: Option<PostalAddress>,
    #[serde(default, deserialize_with = "object")]
    pub postal: Option<PostalAddress>,
    /// The address for invoices.
    #[serde(default, deserialize_with = "object")]
    pub billing: Option<PostalAddress>,
}

/// An organization, which is a customer of the agency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    pub id: OrganizationId,
    pub name: Option<String>,
    /// The currency of its prices, such as `SEK`.
    pub currency: Option<String>,
    /// The country, such as `SE`.
    pub country: Option<String>,
    pub address: OrganizationAddresses,
    pub phone_direct: Option<String>,
    /// The domains, in lower case, that administrators may use in the e-mail addresses of users. Empty allows
    /// every domain.
    pub mail_domains: Vec<String>,
}

impl Organization {
    /// Reports whether administrators may give a user the e-mail address `address`.
    pub fn allows_address(&self, address: &str) -> bool {
        // The last `@` separates, because a quoted local part may contain one (RFC 5321 §4.1.2). A text without
        // `@` has no domain and matches none.
        let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
        self.mail_domains.is_empty()
            || self.mail_domains.iter().any(|allowed| allowed.eq_ignore_ascii_case(domain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_allowed_by_its_whole_domain() {
        let mut organization = Organization {
            id: OrganizationId(1),
            name: None,
            currency: None,
            country: None,
            address: OrganizationAddresses::default(),
            phone_direct: None,
            mail_domains: Vec::new(),
        };
        assert!(organization.allows_address("a@any.example"));
        organization.mail_domains = vec!["desk.example".to_owned()];
        assert!(organization.allows_address("a@desk.example"));
        assert!(organization.allows_address("A@DESK.Example"));
        for other in ["a@x.desk.example", "a@xdesk.example", "a@desk.example.net", "desk.example"]
        {
            assert!(!organization.allows_address(other), "{other}");
        }
    }
}
