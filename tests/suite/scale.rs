//! The figures of docs/operations/capacity.md match its model, and the model matches the measurements.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::common::checkout;

/// Checks the page below `root` with the model.
fn check(root: &Path) -> Output {
    let model = root.join("benches/scale/model.py");
    Command::new("python3").arg("-B").arg(model).arg("--check").output().expect("python3")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn the_capacity_page_matches_its_model_and_the_measurements() {
    let output = check(&checkout("."));
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_figure_that_differs_from_its_source_is_reported() {
    let files = [
        "benches/scale/model.py",
        "benches/scale/popularity.py",
        "benches/RESULTS.md",
        "docs/operations/capacity.md",
        "docs/operations/s3.md",
        "docs/reference/settings.md",
        "src/media/inputs.rs",
        "src/runtime/limits.rs",
    ];
    let differences = [
        ("benches/RESULTS.md", "3,098 to 3,182/s", "1,152/s", "does not say '3,098"),
        (
            "docs/operations/capacity.md",
            "| 1 million (measured) | 580 MB |",
            "| 1 million (measured) | 58 MB |",
            "--write",
        ),
        (
            "docs/operations/capacity.md",
            "580 bytes an item",
            "58 bytes an item",
            "does not say '580",
        ),
    ];
    for (file, from, to, message) in differences {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let copy = root.path().join(file);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(checkout(file), copy).unwrap();
        }
        let text = fs::read_to_string(root.path().join(file)).unwrap();
        assert!(text.contains(from), "{file}");
        fs::write(root.path().join(file), text.replace(from, to)).unwrap();
        let output = check(root.path());
        assert!(!output.status.success() && said(&output).contains(message), "{}", said(&output));
    }
}
