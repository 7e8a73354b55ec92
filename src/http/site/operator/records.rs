//! `/operator/ingest` and `/operator/searches`: list recorded ingest errors and slow searches.

use minijinja::context;
use serde_json::Value;

use super::OperatorRequest;
use crate::http::site::PageResult;
use crate::http::site::account::{ListPage, elements, template_value};
use crate::runtime::limits::OPERATOR_LISTED;

pub(super) async fn ingest_errors(member: OperatorRequest) -> PageResult {
    let list = RecordList {
        target: "/operator/v1/ingest-error",
        name: "ingestErrors",
        template: "operator/ingest.html",
    };
    list.show(&member).await
}

pub(super) async fn slow_searches(member: OperatorRequest) -> PageResult {
    let list = RecordList {
        target: "/operator/v1/slow-search",
        name: "slowSearches",
        template: "operator/searches.html",
    };
    list.show(&member).await
}

/// A list of records, with its API path, its property in the response, and its template.
struct RecordList {
    target: &'static str,
    name: &'static str,
    template: &'static str,
}

impl RecordList {
    async fn show(&self, member: &OperatorRequest) -> PageResult {
        // The lists have no filter, but the pager needs the name of a parameter.
        let list_page = ListPage::from_query(member, "kind", OPERATOR_LISTED)?;
        let mut records = elements(member.call(&list_page.call(self.target)).await?, self.name);
        let pager = list_page.paginate(&mut records);
        let context = context! {
            records => template_value(Value::Array(records)),
            start => list_page.start,
            pager,
        };
        member.page(self.template, context)
    }
}
