//! Wirephoto: the rendition server and content API for news agencies and picture desks.
//!
//! `ARCHITECTURE.md` beside this file is the map of the tree; `STYLE.md` holds its habits. The
//! library exists so that benches, fuzz targets and tests reach the units; its interface may
//! change with every release. Users of the product run the binary.

pub mod accounts;
pub mod app;
pub mod audit;
pub mod auth;
pub mod bench;
pub mod cdn;
pub mod cli;
pub mod clock;
pub mod collections;
pub mod compute;
pub mod config;
pub mod content;
pub mod db;
pub mod delivery;
pub mod error;
pub mod ingest;
pub mod jobs;
pub mod letters;
pub mod limits;
pub mod live;
pub mod media;
pub mod modes;
pub mod nodes;
pub mod notifications;
pub mod oauth;
pub mod orders;
pub mod outbound;
pub mod programs;
pub mod push;
pub mod readiness;
pub mod recipients;
pub mod search;
pub mod secrets;
pub mod slots;
pub mod steady;
pub mod store;
pub mod telemetry;
pub mod traces;
pub mod users;
pub mod web;
