//! Monitoring of a service: the alert rules over faults that were recorded from a real one, and the dashboard over a
//! Prometheus that scrapes one.

mod dashboard;
mod disk;
mod faults;
mod recording;
