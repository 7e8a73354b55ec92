//! `wirephoto doctor`: checks the dependencies of the service from this machine.

use api::operation::{Finding, FindingLevel};
use serde_json::json;

use super::health::{CertificateTrust, HealthReply, get};
use super::table::table;
use super::{CommandFailure, print_json, print_line};
use crate::app::doctor::examine;
use crate::cluster::membership::limits::SKEW_S;
use crate::runtime::clock;
use crate::runtime::config::Config;
use crate::runtime::error::Error;

/// Prints the findings; fails with exit status 1 if one of them is a problem.
pub(super) fn run(config: &Config, json: bool) -> Result<(), CommandFailure> {
    let mut found = examine(config);
    found.extend(public_view(config)?);
    if json {
        for finding in &found {
            print_json(&json!(finding));
        }
    } else {
        let rows: Vec<_> = found.iter().map(row).collect();
        print_line(&table(["", "ABOUT", "FOUND"], &rows));
    }
    if found.iter().any(|finding| finding.level == FindingLevel::Problem) {
        return Err(CommandFailure::Reported);
    }
    Ok(())
}

fn row(finding: &Finding) -> [String; 3] {
    [<&str>::from(finding.level).to_owned(), finding.about.clone(), finding.text.clone()]
}

/// Checks the service at its public address as a client sees it: through the load balancer, the proxy and
/// TLS.
fn public_view(config: &Config) -> Result<Vec<Finding>, CommandFailure> {
    let base = config.server.public_url.0.as_str();
    if base.is_empty() {
        let text = "server.public_url is empty: links are written with the address listened on";
        return Ok(vec![Finding::new(FindingLevel::Warning, "public", text)]);
    }
    let url = format!("{base}/health/ready");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::internal)?;
    Ok(match runtime.block_on(get(&url, CertificateTrust::Checked)) {
        Ok(reply) => public_answer(&url, &reply),
        Err(cause) => {
            let hint = authority_hint(&cause);
            let text = format!("{url}: {cause} (as seen from this machine){hint}");
            vec![Finding::new(FindingLevel::Problem, "public", text)]
        }
    })
}

/// Returns how to trust an authority that the system does not know, if that is the `cause` of a failed request.
fn authority_hint(cause: &str) -> &'static str {
    if cause.contains("UnknownIssuer") {
        "; for an authority of your own, set SSL_CERT_FILE to the file of its certificate"
    } else {
        ""
    }
}

fn public_answer(url: &str, HealthReply { status, body, date }: &HealthReply) -> Vec<Finding> {
    // The error page of a proxy is not JSON, or has no status in this form.
    let answer = if body.is_none() {
        let text = format!(
            "{url}: {status}, and not an answer of this service: either no node behind the proxy \
             is ready, or it does not pass /health/ready on"
        );
        Finding::new(FindingLevel::Warning, "public", text)
    } else if *status == 200 {
        Finding::new(FindingLevel::Fine, "public", format!("{url}: ready"))
    } else {
        let why = body.as_ref().and_then(|health| health.reason.as_deref()).unwrap_or_default();
        Finding::new(FindingLevel::Problem, "public", format!("{url}: {status}, {why}"))
    };
    let mut found = vec![answer];
    if let Some(date) = date {
        let seconds = date.duration_since(clock::now()).as_secs_f64();
        if seconds.abs() >= SKEW_S {
            let text =
                format!("the clock behind {url} is {seconds:+.0} s off that of this machine");
            found.push(Finding::new(FindingLevel::Warning, "clock", text));
        }
    }
    found
}
