//! Headers of media responses that tell crawlers the permitted uses of the files. None is sent unless the operator
//! sets it.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::media::CrawlerPolicy;
use crate::runtime::error::{Error, Result};

/// The header with preferences about automated use. Its draft, draft-ietf-aipref-attach-04, may still rename it.
const CONTENT_USAGE: HeaderName = HeaderName::from_static("content-usage");
/// The reservation of text and data mining: W3C TDMRep, 10 May 2024, §5.
const TDM_RESERVATION: HeaderName = HeaderName::from_static("tdm-reservation");
/// The policy under which the reserved rights are licensed: W3C TDMRep, 10 May 2024, §5.
const TDM_POLICY: HeaderName = HeaderName::from_static("tdm-policy");
/// The value of [`TDM_RESERVATION`] that reserves the rights.
const RESERVED: HeaderValue = HeaderValue::from_static("1");

/// The headers that the settings name.
#[derive(Clone, Debug, Default)]
pub struct CrawlerHeaders(Vec<(HeaderName, HeaderValue)>);

impl CrawlerHeaders {
    /// Prepares the headers of `policy`.
    ///
    /// Fails when a text cannot be the value of a header.
    pub fn from_policy(policy: &CrawlerPolicy) -> Result<Self> {
        let mut headers = Vec::new();
        for (name, text) in
            [(CONTENT_USAGE, &policy.content_usage), (TDM_POLICY, &policy.tdm_policy)]
        {
            if !text.is_empty() {
                headers.push((name, HeaderValue::from_str(text).map_err(Error::internal)?));
            }
        }
        if policy.tdm_reservation {
            headers.push((TDM_RESERVATION, RESERVED));
        }
        Ok(Self(headers))
    }

    /// Adds the headers to a response.
    pub(crate) fn add(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.0 {
            headers.insert(name.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(policy: &CrawlerPolicy) -> HeaderMap {
        let mut headers = HeaderMap::new();
        CrawlerHeaders::from_policy(policy).unwrap().add(&mut headers);
        headers
    }

    #[test]
    fn only_what_is_set_is_sent() {
        assert!(sent(&CrawlerPolicy::default()).is_empty());
        let policy = CrawlerPolicy {
            content_usage: "train-ai=n".to_owned(),
            tdm_reservation: true,
            tdm_policy: "https://agency.example/tdm.json".to_owned(),
        };
        let headers = sent(&policy);
        assert_eq!(headers["content-usage"], "train-ai=n");
        assert_eq!(headers["tdm-reservation"], "1");
        assert_eq!(headers["tdm-policy"], "https://agency.example/tdm.json");
        let reserved = CrawlerPolicy { tdm_reservation: true, ..CrawlerPolicy::default() };
        assert_eq!(sent(&reserved).len(), 1);
    }
}
