//! Renders the operations of the OpenAPI document as Markdown, for `docs/reference/http-api.md`.

use std::fmt::Write;

use serde_json::Value;

use super::document::{self, BaseUrls};
use super::page::{
    access_pieces, bound_pieces, elements, members, operations, text, type_pieces, with_backticks,
};
use crate::runtime::markdown::{cell, code_cell, escaped};

/// The base URL in the examples of the page.
const EXAMPLE: &str = "https://pictures.example.com";

/// Renders the page: every operation with its address, callers, parameters and responses, by section.
pub fn reference() -> String {
    let bases = BaseUrls { public: EXAMPLE, media: EXAMPLE, auth: EXAMPLE };
    let document = document::assemble(bases);
    let mut page = String::new();
    for paragraph in text(&document["info"]["description"]).split("\n\n") {
        push(&mut page, &escaped(paragraph));
    }
    push(
        &mut page,
        "A running server describes the same operations at `/docs`, with a form to try each of them and the call \
         in curl, JavaScript and Python, and as OpenAPI 3.1 at `/openapi.json`. \
         [Errors](errors.md) lists the error codes.",
    );
    for tag in elements(&document["tags"]) {
        section(&mut page, &document, tag);
    }
    page
}

fn push(page: &mut String, paragraph: &str) {
    page.push_str(paragraph.trim());
    page.push_str("\n\n");
}

fn row(page: &mut String, cells: &[&str]) {
    writeln!(page, "| {} |", cells.join(" | ")).expect("a text grows");
}

fn section(page: &mut String, document: &Value, tag: &Value) {
    let name = text(&tag["name"]);
    push(page, &format!("## {name}"));
    push(page, &escaped(text(&tag["description"])));
    let in_section: Vec<_> =
        operations(document).filter(|(_, _, found)| found["tags"][0] == *name).collect();
    row(page, &["Operation", "Method", "Address"]);
    row(page, &["---", "---", "---"]);
    for (path, method, found) in &in_section {
        let method = method.to_ascii_uppercase();
        row(page, &[&cell(text(&found["summary"])), &method, &code_cell(path)]);
    }
    page.push('\n');
    for (path, method, found) in in_section {
        operation(page, path, method, found);
    }
}

fn operation(page: &mut String, path: &str, method: &str, found: &Value) {
    push(page, &format!("### {}", escaped(text(&found["summary"]))));
    let deprecated = if found["deprecated"] == true { " (deprecated)" } else { "" };
    push(page, &format!("`{} {path}`{deprecated}", method.to_ascii_uppercase()));
    push(page, &escaped(text(&found["description"])));
    push(page, &format!("Access: {}.", with_backticks(&access_pieces(&found["security"]))));
    if elements(&found["parameters"]).next().is_some() {
        parameters(page, found);
    }
    let bodies: Vec<String> =
        members(&found["requestBody"]["content"]).map(|(name, media)| body(name, media)).collect();
    if !bodies.is_empty() {
        let description = escaped(text(&found["requestBody"]["description"]));
        push(page, &format!("Body: {}. {description}", bodies.join(" or ")));
    }
    describe_responses(page, &found["responses"]);
}

fn parameters(page: &mut String, found: &Value) {
    row(page, &["Parameter", "In", "Type", "Meaning"]);
    row(page, &["---", "---", "---", "---"]);
    for parameter in elements(&found["parameters"]) {
        let name = code_cell(text(&parameter["name"]));
        let required = if parameter["required"] == true { ", required" } else { "" };
        let location = format!("{}{required}", text(&parameter["in"]));
        let schema = &parameter["schema"];
        let bounds = with_backticks(&bound_pieces(schema));
        let description = format!("{} {bounds}", text(&parameter["description"]));
        let kind = with_backticks(&type_pieces(schema));
        row(page, &[&name, &location, &cell(&kind), &cell(&description)]);
    }
    page.push('\n');
}

/// Describes a body by its type and its schema.
fn body(name: &str, media: &Value) -> String {
    let schema = with_backticks(&type_pieces(&media["schema"]));
    // The schema of a binary body says no more than its media type.
    if media["schema"].get("contentMediaType").is_some() || schema.is_empty() {
        return format!("`{name}`");
    }
    format!("`{name}` ({schema})")
}

/// Renders the responses of an operation. Responses that all operations share are links to the page of errors.
fn describe_responses(page: &mut String, responses: &Value) {
    let mut refusals = Vec::new();
    row(page, &["Status", "Answer"]);
    row(page, &["---", "---"]);
    for (status, response) in members(responses) {
        if response.get("$ref").is_some() {
            refusals.push(format!("[{status}](errors.md#{status})"));
            continue;
        }
        let bodies: Vec<String> =
            members(&response["content"]).map(|(name, media)| body(name, media)).collect();
        let description = format!("{} {}", text(&response["description"]), bodies.join(", "));
        row(page, &[status, &cell(&description)]);
    }
    page.push('\n');
    if !refusals.is_empty() {
        push(page, &format!("Refusals: {}.", refusals.join(", ")));
    }
}
