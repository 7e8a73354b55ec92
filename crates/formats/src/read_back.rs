//! Reads a NewsML-G2 message back into the document's fields, for tests.
//!
//! The reader knows the XML paths of the property table and the path notation of extension properties, but
//! not the code that writes them. Fields come back in a plain form: each leaf is text, and a list is an
//! object keyed by index, because XML does not distinguish them.

use super::newsml::SCHEMES;
use super::newsml::SUBJECTS;
use quick_xml::Reader;
use quick_xml::events::BytesStart;
use quick_xml::events::Event;
use serde_json::Map;
use serde_json::Value;

/// An element with all of its text, including that of its descendants.
#[derive(Debug, Default, Clone)]
pub(super) struct XmlNode {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<XmlNode>,
    pub text: String,
}

impl XmlNode {
    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a XmlNode> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The first element at a path of child names.
    pub(super) fn find(&self, path: &str) -> Option<&XmlNode> {
        path.split('/').try_fold(self, |node, name| node.children.iter().find(|c| c.name == name))
    }

    fn is(&self, attribute: &str, value: &str) -> bool {
        self.attribute(attribute) == Some(value)
    }
}

pub(super) fn parse(xml: &str) -> XmlNode {
    let mut reader = Reader::from_str(xml);
    let mut open = vec![XmlNode::default()];
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => open.push(node(&start)),
            Event::Empty(start) => open.last_mut().unwrap().children.push(node(&start)),
            Event::End(_) => {
                let closed = open.pop().unwrap();
                let parent = open.last_mut().unwrap();
                parent.text.push_str(&closed.text);
                parent.children.push(closed);
            }
            Event::Text(text) => {
                // Parsers normalize line ends (XML 1.0 §2.11), which quick-xml leaves to its
                // caller.
                let text = text.decode().unwrap().replace("\r\n", "\n").replace('\r', "\n");
                open.last_mut().unwrap().text.push_str(&text);
            }
            // quick-xml reports an entity within text as an event of its own.
            Event::GeneralRef(reference) => {
                let name = format!("&{};", reference.decode().unwrap());
                let text = quick_xml::escape::unescape(&name).unwrap().into_owned();
                open.last_mut().unwrap().text.push_str(&text);
            }
            Event::Decl(_) => {}
            Event::Eof => break,
            Event::CData(_) | Event::Comment(_) | Event::PI(_) | Event::DocType(_) => {
                panic!("a message has elements and text only")
            }
        }
    }
    assert_eq!(open.len(), 1);
    open.remove(0).children.remove(0)
}

fn node(start: &BytesStart<'_>) -> XmlNode {
    let attributes = start.attributes().map(|attribute| {
        let attribute = attribute.unwrap();
        let name = String::from_utf8(attribute.key.as_ref().to_vec()).unwrap();
        // Parsers turn white space in attributes into spaces (XML 1.0 §3.3.3).
        let raw = str::from_utf8(&attribute.value).unwrap().replace(['\t', '\n', '\r'], " ");
        (name, quick_xml::escape::unescape(&raw).unwrap().into_owned())
    });
    let name = String::from_utf8(start.name().as_ref().to_vec()).unwrap();
    XmlNode { name, attributes: attributes.collect(), ..XmlNode::default() }
}

/// The fields of a message's main document, with associations.
pub(super) fn read(xml: &str) -> Value {
    let message = parse(xml);
    let items = &message.find("itemSet").unwrap().children;
    let (package, items) = items.split_first().unwrap();
    assert_eq!(package.name, "packageItem");
    let mut documents: Vec<Map<String, Value>> = items.iter().map(read_item).collect();
    let groups = &package.find("groupSet").unwrap().children;
    assert!(groups[0].is("role", "group:main"));
    assert_eq!(package.attribute("guid").unwrap(), format!("{}-pack", uri(&documents[0])));
    assert_eq!(groups[0].find("itemRef").unwrap().attribute("residref"), Some(uri(&documents[0])));
    // The groups list the items in order: each group follows the item that it belongs to.
    let mut next = 1;
    let mut placements = Vec::new();
    for group in &groups[1..] {
        let owner = group.attribute("id").unwrap().strip_prefix("media").unwrap();
        let owner: usize = owner.strip_prefix('-').map_or(0, |number| number.parse().unwrap());
        for reference in group.all("itemRef") {
            assert_eq!(reference.attribute("residref"), Some(uri(&documents[next])));
            placements.push((owner, reference.find("altId").unwrap().text.clone(), next));
            next += 1;
        }
    }
    assert_eq!(next, documents.len(), "every item is in a group");
    // Backwards, so that a document is complete before it moves into its owner.
    for (owner, key, index) in placements.into_iter().rev() {
        let document = Value::Object(std::mem::take(&mut documents[index]));
        set(&mut documents[owner], &["associations", &key], document);
    }
    Value::Object(documents.swap_remove(0))
}

fn uri(document: &Map<String, Value>) -> &str {
    document["uri"].as_str().unwrap()
}

fn read_item(item: &XmlNode) -> Map<String, Value> {
    let mut fields = Map::new();
    let to = &mut fields;
    put(to, &["uri"], item.attribute("guid"));
    put(to, &["version"], item.attribute("version"));
    // For planning and events the element itself stands for the type.
    let kind = match item.name.as_str() {
        "planningItem" => Some("planning"),
        "conceptItem" => Some("event"),
        _ => item.find("itemMeta/itemClass").unwrap().attribute("qcode").map(|c| after(c, ':')),
    };
    put(to, &["type"], kind);
    if let Some(rights) = item.find("rightsInfo") {
        put_text(to, &["copyrightholder"], rights.find("copyrightHolder/name"));
        put_text(to, &["copyrightnotice"], rights.find("copyrightNotice"));
        put_text(to, &["usageterms"], rights.find("usageTerms"));
        let link = rights.all("link").find(|link| link.is("rel", "tt:linkedrights"));
        let link = link.and_then(|link| link.attribute("href"));
        put(to, &["rightsinfo", "linkedrights"], link);
        let expression = rights.find("rightsExpressionData");
        put(to, &["rightsinfo", "langid"], expression.and_then(|e| e.attribute("langid")));
        put_text(to, &["rightsinfo", "encodedrights"], expression);
    }
    read_item_meta(to, item.find("itemMeta").unwrap());
    read_content_meta(to, item.find("contentMeta").unwrap());
    read_positions(to, item);
    if let Some(content) = item.find("contentSet") {
        read_content(to, content);
    }
    for coverage in
        item.find("newsCoverageSet").into_iter().flat_map(|set| set.all("newsCoverage"))
    {
        let planning = read_planning(coverage.find("planning").unwrap());
        let key = coverage.find("newsCoverageExtProperty").unwrap().attribute("value").unwrap();
        set(to, &["assignments", key], Value::Object(planning));
    }
    if let Some(event) = item.find("concept/eventDetails") {
        read_event(to, event);
    }
    // Extension properties are exact, so they are read last and take precedence.
    read_extensions(to, item.find("itemMeta").unwrap(), "itemMetaExtProperty");
    read_extensions(to, item.find("contentMeta").unwrap(), "contentMetaExtProperty");
    fields
}

fn read_item_meta(to: &mut Map<String, Value>, meta: &XmlNode) {
    for (element, name) in [
        ("versionCreated", "versioncreated"),
        ("firstCreated", "firstcreated"),
        ("embargoed", "embargoed"),
        ("profile", "profile"),
        ("title", "title"),
        ("edNote", "ednote"),
        ("expires", "expires"),
    ] {
        put_text(to, &[name], meta.find(element));
    }
    put(
        to,
        &["pubstatus"],
        meta.find("pubStatus").unwrap().attribute("qcode").map(|c| after(c, ':')),
    );
    let links = |rel: &'static str| meta.all("link").filter(move |link| link.is("rel", rel));
    for (index, link) in links("irel:previousVersion").enumerate() {
        put(to, &["replacing", &index.to_string()], link.attribute("residref"));
    }
    put(to, &["replacedby"], links("tt:replacedby").find_map(|link| link.attribute("residref")));
    for (index, link) in links("tt:trustindicator").enumerate() {
        for name in ["href", "title"] {
            put(to, &["trustindicator", &index.to_string(), name], link.attribute(name));
        }
    }
}

fn read_content_meta(to: &mut Map<String, Value>, meta: &XmlNode) {
    put_text(to, &["urgency"], meta.find("urgency"));
    put_text(to, &["contentcreated"], meta.find("contentCreated"));
    put_text(to, &["located"], meta.find("located/name"));
    put(to, &["language"], meta.find("language").and_then(|language| language.attribute("tag")));
    put_text(to, &["headline"], meta.find("headline"));
    put_text(to, &["byline"], meta.find("creditline"));
    let source = meta.all("infoSource").find(|source| source.is("role", "tt:source"));
    put_text(to, &["source"], source.and_then(|source| source.find("name")));
    let listed = meta.all("infoSource").filter(|source| source.attribute("role").is_none());
    read_concepts(to, "infosource", listed);
    read_concepts(to, "genre", meta.all("genre"));
    for (name, kind) in SUBJECTS {
        let keyword = |node: &&XmlNode| name == "subject" && node.name == "keyword";
        let all = meta.children.iter();
        read_concepts(
            to,
            name,
            all.filter(|n| keyword(n) || n.name == "subject" && n.is("type", kind)),
        );
    }
    for (element, role, name) in [
        ("slugline", None, "slugline"),
        ("slugline", Some("tt:slug"), "slug"),
        ("description", Some("drol:caption"), "description_text"),
        ("description", Some("drol:summary"), "description_text"),
        ("description", Some("tt:usage"), "description_usage"),
    ] {
        put_text(to, &[name], meta.all(element).find(|node| node.attribute("role") == role));
    }
    for id in meta.all("altId") {
        if id.is("type", "tt:transmissionreference") {
            put_text(to, &["originaltransmissionreference"], Some(id));
        } else {
            put_text(to, &["altids", after(id.attribute("type").unwrap(), ':')], Some(id));
        }
    }
    // A creator with a literal only repeats the byline.
    let creators = meta.all("creator").filter(|creator| creator.attribute("literal").is_none());
    for (index, creator) in creators.enumerate() {
        let index = index.to_string();
        for (role, name) in
            [("nrol:full", "byline"), ("nrol:given", "firstname"), ("nrol:family", "lastname")]
        {
            let text = creator.all("name").find(|node| node.is("role", role));
            put_text(to, &["bylines", &index, name], text);
        }
        for name in ["email", "phone"] {
            let path = format!("personDetails/contactInfo/{name}");
            put_text(to, &["bylines", &index, name], creator.find(&path));
        }
    }
}

fn read_concepts<'a>(
    to: &mut Map<String, Value>,
    list: &str,
    nodes: impl Iterator<Item = &'a XmlNode>,
) {
    for (index, node) in nodes.enumerate() {
        let index = index.to_string();
        if node.name == "keyword" {
            put(to, &[list, &index, "scheme"], Some("http://tt.se/spec/keyword/1.0"));
            put_text(to, &[list, &index, "name"], Some(node));
        } else {
            put_text(to, &[list, &index, "name"], node.find("name"));
        }
        if let Some((alias, code)) = node.attribute("qcode").and_then(|c| c.split_once(':')) {
            let scheme = SCHEMES.iter().find(|(_, candidate)| *candidate == alias).unwrap().0;
            put(to, &[list, &index, "scheme"], Some(scheme));
            put(to, &[list, &index, "code"], Some(code));
        }
        for name in ["confidence", "relevance"] {
            put(to, &[list, &index, name], node.attribute(name));
        }
    }
}

/// Reads positions, which are separate from the places and joined to them by identifier.
fn read_positions(to: &mut Map<String, Value>, item: &XmlNode) {
    let meta = item.find("contentMeta").unwrap();
    let places: Vec<_> = meta.all("subject").filter(|n| n.is("type", "cpnat:geoArea")).collect();
    for assertion in item.all("assert") {
        let identity = |node: &XmlNode| {
            let text = |name| node.attribute(name).map(str::to_owned);
            (text("qcode"), text("literal"))
        };
        let mut matches =
            places.iter().enumerate().filter(|(_, place)| identity(place) == identity(assertion));
        let (index, _) = matches.next().unwrap();
        assert!(matches.next().is_none(), "an assertion names one place");
        let index = index.to_string();
        let at = ["place", index.as_str(), "geometry_geojson"];
        let position = assertion.find("geoAreaDetails/position").unwrap();
        put(to, &[at[0], at[1], at[2], "type"], Some("Point"));
        for (number, name) in [("0", "longitude"), ("1", "latitude")] {
            let path = [at[0], at[1], at[2], "coordinates", number];
            put(to, &path, position.attribute(name));
        }
    }
}

fn read_content(to: &mut Map<String, Value>, content: &XmlNode) {
    for body in content.all("inlineXML") {
        let rich = body.attribute("contenttypevariant") == Some("richhtml5");
        let name = if rich { "body_richhtml5" } else { "body_html5" };
        put_text(to, &[name], body.find("html/body"));
        put(to, &["charcount"], body.attribute("charcount"));
        put(to, &["wordcount"], body.attribute("wordcount"));
    }
    for body in content.all("inlineData") {
        let text = body.is("contenttype", "text/plain");
        put_text(to, &[if text { "body_text" } else { "body_sportsml" }], Some(body));
    }
    for remote in content.all("remoteContent") {
        let mut rendition = Map::new();
        for (attribute, name) in [
            ("href", "href"),
            ("contenttype", "mimetype"),
            ("title", "title"),
            ("size", "sizeinbytes"),
            ("width", "width"),
            ("height", "height"),
            ("duration", "duration"),
            ("videoavgbitrate", "bitrate"),
        ] {
            put(&mut rendition, &[name], remote.attribute(attribute));
        }
        read_extensions(&mut rendition, remote, "remoteContentExtProperty");
        let key = &remote.find("altId").unwrap().text;
        set(to, &["renditions", key], Value::Object(rendition));
    }
}

fn read_planning(planning: &XmlNode) -> Map<String, Value> {
    let mut fields = Map::new();
    let class = planning.find("itemClass").and_then(|class| class.attribute("qcode"));
    put(&mut fields, &["type"], class.map(|class| after(class, ':')));
    for (element, name) in [
        ("scheduled", "datetime"),
        ("headline", "headline"),
        ("description", "description_text"),
        ("edNote", "ednote"),
    ] {
        put_text(&mut fields, &[name], planning.find(element));
    }
    read_extensions(&mut fields, planning, "planningExtProperty");
    fields
}

fn read_event(to: &mut Map<String, Value>, event: &XmlNode) {
    for (path, time, day) in
        [("dates/start", "datetime", "date"), ("dates/end", "enddatetime", "enddate")]
    {
        let node = event.find(path);
        // Times and days share the element, and only a time has a `T`.
        let is_time = node.is_some_and(|node| node.text.contains('T'));
        put_text(to, &[if is_time { time } else { day }], node);
    }
    for (path, name) in [
        ("location/name", "arena"),
        ("location/POIDetails/address/line", "address"),
        ("location/POIDetails/address/locality/name", "city"),
        ("location/POIDetails/address/country/name", "country"),
        ("organiser/name", "organizer"),
    ] {
        put_text(to, &["body_event", name], event.find(path));
    }
}

fn read_extensions(to: &mut Map<String, Value>, parent: &XmlNode, element: &str) {
    for property in parent.all(element) {
        // Rights that are stated besides the document have a URI instead.
        let Some(rel) = property.attribute("rel") else { continue };
        let path = after(rel, ':');
        let steps: Vec<String> = path.split('/').map(decode).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let value = property.attribute("value").unwrap();
        if property.is("type", "tt:json") {
            set(to, &steps, plain(&serde_json::from_str(value).unwrap()));
        } else {
            put(to, &steps, Some(value));
        }
    }
}

/// Converts a document to the reader's plain form: leaves as text, lists as objects, nothing empty.
pub(super) fn plain(value: &Value) -> Value {
    match value {
        Value::Null => Value::Object(Map::new()),
        Value::Bool(_) | Value::Number(_) => Value::String(value.to_string()),
        Value::String(_) => value.clone(),
        Value::Array(values) => {
            let entries = values.iter().enumerate();
            prune(entries.map(|(index, value)| (index.to_string(), plain(value))).collect())
        }
        Value::Object(members) => {
            prune(members.iter().map(|(name, value)| (name.clone(), plain(value))).collect())
        }
    }
}

fn prune(members: Map<String, Value>) -> Value {
    let filled = |value: &Value| value.as_object().is_none_or(|members| !members.is_empty());
    Value::Object(members.into_iter().filter(|(_, value)| filled(value)).collect())
}

fn decode(step: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = step.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next().unwrap()).to_digit(16).unwrap();
        let byte = if byte == b'%' { u8::try_from(digit() * 16 + digit()).unwrap() } else { byte };
        bytes.push(byte);
    }
    String::from_utf8(bytes).unwrap()
}

fn after(text: &str, separator: char) -> &str {
    text.split_once(separator).unwrap().1
}

fn put_text(to: &mut Map<String, Value>, path: &[&str], node: Option<&XmlNode>) {
    put(to, path, node.map(|node| node.text.as_str()));
}

fn put(to: &mut Map<String, Value>, path: &[&str], text: Option<&str>) {
    if let Some(text) = text {
        set(to, path, Value::String(text.to_owned()));
    }
}

fn set(to: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [name] => {
            to.insert((*name).to_owned(), value);
        }
        [name, rest @ ..] => {
            let below = to.entry(*name).or_insert_with(|| Value::Object(Map::new()));
            set(below.as_object_mut().expect("an inner path"), rest, value);
        }
    }
}
