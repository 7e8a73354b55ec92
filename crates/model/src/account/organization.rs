//! Organizations (contract users-3).

use serde::{Deserialize, Serialize};

use super::OrganizationId;

/// An address; every part may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PostalAddress {
    /// Street and number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub street: Option<String>,
    /// Post box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#box: Option<String>,
    /// Postal code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zip_code: Option<String>,
    /// City.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    /// Country.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
}

/// The addresses of an organization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrganizationAddresses {
    /// Where to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<PostalAddress>,
    /// Where to write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postal: Option<PostalAddress>,
    /// Where to send invoices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing: Option<PostalAddress>,
}

/// A customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// Its number.
    pub id: OrganizationId,
    /// Its name.
    pub name: Option<String>,
    /// The currency of its prices, such as `SEK`.
    pub currency: Option<String>,
    /// Its country, such as `SE`.
    pub country: Option<String>,
    /// Its addresses.
    pub address: OrganizationAddresses,
    /// Its telephone number.
    pub phone_direct: Option<String>,
    /// Domains, in lower case, of the e-mail addresses that its administrators may give to users;
    /// none allows every domain.
    pub mail_domains: Vec<String>,
}

impl Organization {
    /// Whether administrators may give a user the e-mail address `address`.
    #[must_use]
    pub fn allows_address(&self, address: &str) -> bool {
        let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
        self.mail_domains.is_empty()
            || self.mail_domains.iter().any(|own| own.eq_ignore_ascii_case(domain))
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
