//! Parses the header `traceparent` (W3C Trace Context §3.2).

use opentelemetry::trace::{SpanId, TraceId};

/// The trace context of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceParent {
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
    pub(super) sampled: bool,
}

impl TraceParent {
    /// Parses `00-<trace>-<span>-<flags>`; later versions may append more fields.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let version = parts.next().filter(|text| is_hex(text, 2))?;
        let trace = parts.next().filter(|text| is_hex(text, 32))?;
        let span = parts.next().filter(|text| is_hex(text, 16))?;
        let flags = parts.next().filter(|text| is_hex(text, 2))?;
        // `ff` is not a version, and version 00 has exactly four fields (§3.2.2).
        if version == "ff" || (version == "00" && parts.next().is_some()) {
            return None;
        }
        // Ids of zeros are invalid (§3.2.2).
        let trace = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
        let flags = u8::from_str_radix(flags, 16).ok()?;
        // The other flags are for later versions and must be ignored (§3.2.2).
        Some(Self { trace: trace.into(), span: span.into(), sampled: flags & 1 == 1 })
    }
}

/// Returns whether `text` is a number of `digits` hexadecimal digits in lower case.
fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn ok_the_header_names_trace_parent_and_whether_it_is_traced() {
        for (text, sampled) in [
            (format!("00-{TRACE}-{SPAN}-01"), true),
            (format!("00-{TRACE}-{SPAN}-00"), false),
            (format!("00-{TRACE}-{SPAN}-03"), true),
            (format!("cc-{TRACE}-{SPAN}-01-more"), true),
        ] {
            let parent = TraceParent::parse(&text).expect("valid");
            assert_eq!(
                (parent.trace.to_string(), parent.span.to_string()),
                (TRACE.into(), SPAN.into())
            );
            assert_eq!(parent.sampled, sampled, "{text}");
        }
    }

    #[test]
    fn err_anything_else_counts_for_nothing() {
        let zero = "0".repeat(32);
        for text in [
            String::new(),
            "00".to_owned(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{zero}-{SPAN}-01"),
            format!("00-{TRACE}-{}-01", &zero[..16]),
            format!("00-{TRACE}+{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}é-01"),
        ] {
            assert_eq!(TraceParent::parse(&text), None, "{text}");
        }
    }
}
