//! Provides the basics of the process: settings, clock, logs and metrics, errors, limits, worker threads,
//! child processes. It knows neither items nor accounts, and no external system.

pub mod clock;
pub mod compute;
pub mod config;
pub mod error;
pub mod error_codes;
pub mod failure_log;
pub mod fair_queue;
pub mod hot_swap;
pub mod json_object;
pub mod limits;
pub mod markdown;
pub mod memory_budget;
pub mod modes;
pub mod programs;
pub mod slots;
pub mod telemetry;
pub mod tls_client;
pub mod traces;
