//! The credit line of an item, which is printed beside the picture.

use serde_json::Value;

use super::api_client::text;

/// The `rel` of the information source that holds a photograph's credit.
const CREDIT: &str = "credit";

/// Joins the byline and the agency of the item: `Name / Agency`. The agency is the credit that was delivered with
/// the photograph, else the source.
pub(super) fn credit_line(document: &Value) -> String {
    let sources = document["infosource"].as_array().into_iter().flatten();
    let mut credits = sources.filter(|source| source["rel"] == CREDIT);
    let credit = credits.find_map(|source| source["name"].as_str());
    let byline = text(document, "byline").trim();
    let agency = credit.unwrap_or(text(document, "source")).trim();
    // Some bylines already name the agency.
    if agency.is_empty() || byline.contains(agency) {
        return byline.to_owned();
    }
    if byline.is_empty() { agency.to_owned() } else { format!("{byline} / {agency}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_credit_names_photographer_and_agency_once() {
        let check = |document: Value, expected: &str| assert_eq!(credit_line(&document), expected);
        check(json!({ "byline": "Ann Ek", "source": "TT" }), "Ann Ek / TT");
        check(json!({ "byline": "Ann Ek / TT", "source": "TT" }), "Ann Ek / TT");
        check(json!({ "byline": " Ann Ek " }), "Ann Ek");
        check(json!({ "source": "TT" }), "TT");
        check(json!({}), "");
        let sources = json!([{ "name": "Desk" }, { "name": "Bureau", "rel": "credit" }]);
        check(
            json!({ "byline": "Ann Ek", "source": "TT", "infosource": sources }),
            "Ann Ek / Bureau",
        );
    }
}
