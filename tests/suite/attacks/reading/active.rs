//! PDFs with scripts and launch actions.

use std::fs;

use crate::common::{DEMO_KEY, Server};

/// A one-page PDF that runs `action` when it is opened.
fn pdf(action: &str) -> Vec<u8> {
    let objects = [
        format!("<< /Type /Catalog /Pages 2 0 R /OpenAction {action} >>"),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 72 72] >>".to_owned(),
    ];
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in (1..).zip(&objects) {
        offsets.push(file.len());
        file.extend(format!("{number} 0 obj\n{object}\nendobj\n").bytes());
    }
    let start = file.len();
    file.extend(b"xref\n0 4\n0000000000 65535 f \n");
    offsets.iter().for_each(|at| file.extend(format!("{at:010} 00000 n \n").bytes()));
    file.extend(format!("trailer << /Size 4 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").bytes());
    file
}

const SCRIPT: &str = "<< /S /JavaScript /JS (app.alert\\(1\\)) >>";
const LAUNCH: &str = "<< /S /Launch /F (cmd.exe) >>";

/// Ingests a PDF; returns whether it was accepted, and the output.
fn ingest(server: &Server, id: &str, bytes: &[u8], setting: &str) -> (bool, String) {
    let folder = server.dir.path().join(format!("{id}-{setting}")).join("graphic").join(id);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("item.json"), "{\"headline\":\"x\"}").unwrap();
    fs::write(folder.join("NormalHires.pdf"), bytes).unwrap();
    let setting = format!("media.pdf_active_content={setting}");
    let output = server.command(&["ingest", &folder.to_string_lossy(), "--set", &setting]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    (output.status.success(), said)
}

#[test]
fn a_pdf_with_active_content_is_reported_and_can_be_refused() {
    let server = Server::with_pictures::<&str>(&[], &[]);
    for (id, action, words) in [
        ("script", SCRIPT, &["JavaScript"][..]),
        ("launch", LAUNCH, &["Launch"]),
        (
            "both",
            "[<< /S /JavaScript /JS (1) /Next << /S /Launch /F (x) >> >>]",
            &["JavaScript", "Launch"],
        ),
    ] {
        let (taken, said) = ingest(&server, id, &pdf(action), "refuse");
        assert!(!taken && said.contains("media.pdf_active_content"), "{id}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{id}: {said}");
        let address = format!("/media/graphic/{id}.json?ak={DEMO_KEY}");
        assert_eq!(server.get(&address).status(), 404, "{id}");
        let (taken, said) = ingest(&server, id, &pdf(action), "warn");
        assert!(taken && words.iter().all(|word| said.contains(word)), "{id}: {said}");
        server.until("it to be there", || (server.get(&address).status() == 200).then_some(()));
    }
    let (taken, said) = ingest(&server, "plain", &pdf("[3 0 R /Fit]"), "refuse");
    assert!(taken && !said.contains("JavaScript") && !said.contains("Launch"), "{said}");
    // A PDF that cannot be parsed cannot be checked.
    let (taken, said) = ingest(&server, "broken", b"%PDF-1.7\n1 0 obj << broken", "refuse");
    assert!(!taken && said.contains("media.pdf_active_content"), "{said}");
}
