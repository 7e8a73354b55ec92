//! Tests that quoted strings survive a round trip, and that the script generates the same code as the server.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use proptest::{
    collection::vec,
    option,
    prelude::Strategy,
    sample::select,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

use super::*;

/// Strings that could break out of quotes, hide, or have a special meaning.
const HOSTILE: [&str; 24] = [
    "'",
    "\"",
    "\\",
    "\\'",
    "'\\''",
    "$(id)",
    "$HOME",
    "`id`",
    "${x}",
    "!!",
    "\n",
    "\r\n",
    "\t",
    "%s",
    "{}",
    "#",
    "\u{202e}",
    "\u{2028}",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{85}",
    "å",
    "日本",
    "🖼",
];

/// `count` texts: hostile parts among characters of every kind, but no NUL.
fn texts(count: usize) -> Vec<String> {
    let any = "[^\\x00]{0,4}".prop_map(|text| text);
    let part = (select(&HOSTILE[..]), any).prop_map(|(hostile, any)| format!("{any}{hostile}"));
    sample(&vec(part, 0..6).prop_map(|parts| parts.concat()), count)
}

fn sample<T>(strategy: &impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::new(Config::default());
    let mut one = || strategy.new_tree(&mut runner).expect("nothing is rejected").current();
    (0..count).map(|_| one()).collect()
}

/// Runs a program with `input`, and returns its output.
fn run(program: &str, arguments: &[&str], input: &str) -> Vec<u8> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("./test installs it");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("ended");
    writer.join().expect("no panic").expect("all was read");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn a_shell_takes_every_text_as_one_word() {
    let texts = texts(400);
    let lines: String =
        texts.iter().map(|text| format!("printf '%s\\0' {}\n", shell_quote(text))).collect();
    let output = String::from_utf8(run("bash", &[], &lines)).expect("UTF-8");
    let words: Vec<&str> = output.split_terminator('\0').collect();
    assert_eq!(words, texts);
}

#[test]
fn javascript_and_python_read_every_string_alike() {
    let mut texts = texts(400);
    texts.push("a\0b".to_owned());
    let list: Vec<String> = texts.iter().map(|text| string_literal(text)).collect();
    let list = list.join(",\n");
    for (program, script) in [
        ("node", format!("console.log(JSON.stringify([{list}]))")),
        ("python3", format!("import json; print(json.dumps([{list}]))")),
    ] {
        let read: Vec<String> = serde_json::from_slice(&run(program, &["-"], &script)).unwrap();
        assert_eq!(read, texts, "{program}");
    }
}

#[test]
fn copied_snippets_contain_nothing_hidden() {
    for text in texts(200) {
        for (name, line) in [("shell", shell_quote(&text)), ("others", string_literal(&text))] {
            let hidden = line.chars().any(|c| is_hidden(c) && c != '\n' && c != '\t');
            assert!(!hidden, "{name}: {line:?}");
        }
    }
}

fn sketches() -> Vec<SnippetCall> {
    let all = (
        (select(&["GET", "POST", "PUT", "DELETE"][..]), select(texts(100))),
        (option::of(select(texts(20))), option::of(select(texts(20)))),
        (option::of(select(texts(100))), option::of(select(texts(20)))),
    );
    let sketch = all.prop_map(|((method, url), (authorization, kind), (body, file))| {
        SnippetCall { method: method.to_owned(), url, authorization, kind, body, file }
    });
    sample(&sketch, 300)
}

/// URLs with names of parameters in them.
const PATHS: [&str; 4] = ["/a", "/a/{id}", "/a/{id}-crop_w{w}.jpg", "/{missing}/{id}/"];

#[test]
fn the_script_writes_what_the_server_writes() {
    let pair = || (select(&["id", "w", "q", "a b"][..]), select(texts(60)));
    let owned = |pairs: Vec<(&str, String)>| -> Vec<(String, String)> {
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    let targets: Vec<_> = sample(&(select(&PATHS[..]), vec(pair(), 0..1), vec(pair(), 0..4)), 300)
        .into_iter()
        .map(|(path, values, query)| (path, owned(values), owned(query)))
        .collect();
    let sketches = sketches();
    let expected: Vec<Value> = sketches.iter().map(|one| json!(CodeSnippets::from(one))).collect();
    let addresses: Vec<Value> = targets
        .iter()
        .map(|(path, values, query)| {
            let target = target(path, values, query);
            json!([target, file_name(&target)])
        })
        .collect();
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/js/snippets.js");
    let module = std::fs::read_to_string(module).expect("the script");
    let script = format!(
        "{module}
        const given = {};
        const addresses = given.targets.map(([path, values, query]) => {{
            const address = target(path, values, query);
            return [address, fileName(address)];
        }});
        console.log(JSON.stringify([given.sketches.map(snippets), addresses]));",
        json!({ "sketches": sketches, "targets": targets })
    );
    let output = run("node", &["--input-type=module", "-"], &script);
    let found: Value = serde_json::from_slice(&output).expect("JSON");
    for (at, (found, expected)) in found[0].as_array().unwrap().iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "{:?}", sketches[at]);
    }
    for (at, (found, expected)) in found[1].as_array().unwrap().iter().zip(&addresses).enumerate()
    {
        assert_eq!(found, expected, "{:?}", targets[at]);
    }
    assert_eq!((expected.len(), addresses.len()), (300, 300));
}

#[test]
fn a_call_is_written_as_people_write_it() {
    let sketch = SnippetCall {
        method: "PUT".to_owned(),
        url: "http://a/user/v1/profile".to_owned(),
        authorization: Some("ApiKey YOUR_KEY".to_owned()),
        kind: Some("application/json".to_owned()),
        body: Some("{\"who\":\"O'Hara\"}".to_owned()),
        file: None,
    };
    assert_eq!(
        sketch.curl(),
        "curl -X PUT 'http://a/user/v1/profile' \\\n  -H 'Authorization: ApiKey YOUR_KEY' \\\n  \
         -H 'Content-Type: application/json' \\\n  --data-raw '{\"who\":\"O'\\''Hara\"}'"
    );
    assert_eq!(
        sketch.javascript(),
        "const response = await fetch('http://a/user/v1/profile', {\n  method: 'PUT',\n  \
         headers: {\n    'Authorization': 'ApiKey YOUR_KEY',\n    'Content-Type': \
         'application/json',\n  },\n  body: '{\"who\":\"O\\'Hara\"}',\n});\n\
         console.log(await response.text());"
    );
    assert_eq!(
        sketch.python(),
        "import urllib.request\n\nrequest = urllib.request.Request(\n    \
         'http://a/user/v1/profile',\n    method='PUT',\n    headers={\n        'Authorization': \
         'ApiKey YOUR_KEY',\n        'Content-Type': 'application/json',\n    },\n    \
         data='{\"who\":\"O\\'Hara\"}'.encode(),\n)\n\
         with urllib.request.urlopen(request) as response:\n    print(response.read().decode())"
    );
    let open = SnippetCall { method: "GET".to_owned(), url: "http://a/{id}".to_owned(), ..sketch };
    let open = SnippetCall { authorization: None, kind: None, body: None, ..open };
    assert_eq!(open.curl(), "curl --globoff 'http://a/{id}'");
}

#[test]
fn a_target_keeps_the_names_that_have_no_value() {
    let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let path = "/media/{mediaType}/{id}.jpg";
    let values = pairs(&[("mediaType", "image"), ("id", "")]);
    assert_eq!(target(path, &values, &pairs(&[("agr", "")])), "/media/image/{id}.jpg");
    let values = pairs(&[("mediaType", "image"), ("id", "a/b")]);
    let query = pairs(&[("q", "å b&c"), ("s", "1")]);
    assert_eq!(target(path, &values, &query), "/media/image/a%2Fb.jpg?q=%C3%A5+b%26c&s=1");
    assert_eq!(file_name("/media/image/a_b.jpg?agr=1"), "a_b.jpg");
    assert_eq!(file_name("/x/..%2F"), "2F");
    assert_eq!(file_name("/x/"), "answer");
}
