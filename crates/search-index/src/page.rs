//! Returns a page of the matches in the requested order.

use query::{DateField, Query};

use crate::error::{DeadlineCheck, Result};
use crate::evaluate::MatchedDocuments;
use crate::request::{ResultPage, SortDate, SortOrder};
use crate::{order, rank};

impl MatchedDocuments<'_> {
    /// Returns the version numbers on a page; `query` determines the relevance.
    pub fn page(
        &self,
        page: ResultPage,
        query: &Query,
        is_over: DeadlineCheck<'_>,
    ) -> Result<Vec<u32>> {
        match page.sort {
            SortOrder::Relevance => rank::by_relevance(self, query, page, is_over),
            SortOrder::By { date: SortDate::Order, descending } => {
                Ok(order::by_order(self, descending, page))
            }
            SortOrder::By { date, descending } => {
                let date = match date {
                    SortDate::Date => DateField::Date,
                    SortDate::VersionStored => DateField::VersionStored,
                    SortDate::VersionCreated | SortDate::Order => DateField::VersionCreated,
                };
                order::by_date(self, date, descending, page, is_over)
            }
        }
    }
}
