//! Defines the place of each document property in the XML.

/// The place where a property is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyPlacement {
    /// In its own element or attribute of every item.
    Everywhere,
    /// In its own element of a `newsItem`; an extension property in the other two.
    NewsItem,
    /// In its own element of a `planningItem`; an extension property in the other two.
    PlanningItem,
    /// In its own element of a `conceptItem`; an extension property in the other two.
    ConceptItem,
    /// An extension property of `itemMeta`, which describes the item rather than its content.
    ItemExtension,
    /// An extension property of `contentMeta`.
    ContentExtension,
}

/// Every property of schema 1.6 with its place and its path below the item's element, sorted by name.
///
/// A value that does not fit the type at its place (a line end in a one-line text, a malformed date) is also
/// written as an extension property. `ext` is short for `contentMetaExtProperty`, `iext` for
/// `itemMetaExtProperty`; both are identified by `@rel`, which is `ttninjs:` and the property's path.
pub const PROPERTIES: &[(&str, PropertyPlacement, &str)] = &[
    ("$standard", PropertyPlacement::ItemExtension, "iext ttninjs:$standard/…"),
    ("advice", PropertyPlacement::ContentExtension, "ext ttninjs:advice/…"),
    (
        "altids",
        PropertyPlacement::Everywhere,
        "contentMeta/altId[@type='tt:originaltransmissionreference']",
    ),
    (
        "assignments",
        PropertyPlacement::PlanningItem,
        "newsCoverageSet/newsCoverage; rest planningExtProperty",
    ),
    (
        "associations",
        PropertyPlacement::Everywhere,
        "an item each; packageItem//itemRef/altId[@type='tt:associd']",
    ),
    (
        "body_event",
        PropertyPlacement::ConceptItem,
        "concept/eventDetails/location, organiser; rest ext",
    ),
    (
        "body_html5",
        PropertyPlacement::NewsItem,
        "contentSet/inlineXML[@contenttype='application/xhtml+xml']",
    ),
    ("body_pages", PropertyPlacement::ContentExtension, "ext ttninjs:body_pages/…"),
    (
        "body_richhtml5",
        PropertyPlacement::NewsItem,
        "contentSet/inlineXML[@contenttypevariant='richhtml5']",
    ),
    (
        "body_sportsml",
        PropertyPlacement::NewsItem,
        "contentSet/inlineData[@contenttypevariant='SportsML']",
    ),
    ("body_text", PropertyPlacement::NewsItem, "contentSet/inlineData[@contenttype='text/plain']"),
    (
        "byline",
        PropertyPlacement::NewsItem,
        "contentMeta/creditline; creator/@literal without bylines",
    ),
    (
        "bylines",
        PropertyPlacement::Everywhere,
        "contentMeta/creator/name, personDetails; rest ext",
    ),
    (
        "charcount",
        PropertyPlacement::NewsItem,
        "contentSet/inlineXML/@charcount; ext without a body",
    ),
    ("commissioncode", PropertyPlacement::ContentExtension, "ext ttninjs:commissioncode"),
    ("commissionedby", PropertyPlacement::ContentExtension, "ext ttninjs:commissionedby/0"),
    ("contentcreated", PropertyPlacement::Everywhere, "contentMeta/contentCreated"),
    ("copyrightholder", PropertyPlacement::Everywhere, "rightsInfo/copyrightHolder/name"),
    ("copyrightnotice", PropertyPlacement::Everywhere, "rightsInfo/copyrightNotice"),
    (
        "date",
        PropertyPlacement::ContentExtension,
        "ext ttninjs:date; dates/start of an event without datetime",
    ),
    ("datetime", PropertyPlacement::ConceptItem, "concept/eventDetails/dates/start"),
    ("description_text", PropertyPlacement::Everywhere, "contentMeta/description"),
    (
        "description_usage",
        PropertyPlacement::Everywhere,
        "contentMeta/description[@role='tt:usage']",
    ),
    ("ednote", PropertyPlacement::Everywhere, "itemMeta/edNote"),
    ("embargoed", PropertyPlacement::Everywhere, "itemMeta/embargoed"),
    ("embargoedreason", PropertyPlacement::ItemExtension, "iext ttninjs:embargoedreason"),
    (
        "enddate",
        PropertyPlacement::ContentExtension,
        "ext ttninjs:enddate; dates/end without enddatetime",
    ),
    ("enddatetime", PropertyPlacement::ConceptItem, "concept/eventDetails/dates/end"),
    ("event", PropertyPlacement::Everywhere, "contentMeta/subject[@type='cpnat:event']; rest ext"),
    ("expires", PropertyPlacement::Everywhere, "itemMeta/expires"),
    ("firstcreated", PropertyPlacement::Everywhere, "itemMeta/firstCreated"),
    ("fixture", PropertyPlacement::Everywhere, "contentMeta/subject[@type='tt:story']; rest ext"),
    ("genre", PropertyPlacement::NewsItem, "contentMeta/genre; rest ext"),
    ("headline", PropertyPlacement::Everywhere, "contentMeta/headline"),
    ("infosource", PropertyPlacement::Everywhere, "contentMeta/infoSource; rest ext"),
    ("job", PropertyPlacement::ItemExtension, "iext ttninjs:job"),
    (
        "language",
        PropertyPlacement::Everywhere,
        "contentMeta/language/@tag and the item's xml:lang",
    ),
    ("located", PropertyPlacement::Everywhere, "contentMeta/located/name"),
    ("mimetype", PropertyPlacement::ContentExtension, "ext ttninjs:mimetype"),
    ("newsvalue", PropertyPlacement::ContentExtension, "ext ttninjs:newsvalue"),
    (
        "object",
        PropertyPlacement::Everywhere,
        "contentMeta/subject[@type='cpnat:object']; rest ext",
    ),
    (
        "organisation",
        PropertyPlacement::Everywhere,
        "contentMeta/subject[@type='cpnat:organisation']; rest ext",
    ),
    (
        "originaltransmissionreference",
        PropertyPlacement::Everywhere,
        "contentMeta/altId[@type='tt:transmissionreference']",
    ),
    (
        "person",
        PropertyPlacement::Everywhere,
        "contentMeta/subject[@type='cpnat:person']; rest ext",
    ),
    (
        "place",
        PropertyPlacement::Everywhere,
        "contentMeta/subject[@type='cpnat:geoArea']; position in assert; rest ext",
    ),
    (
        "product",
        PropertyPlacement::Everywhere,
        "contentMeta/subject[@type='tt:product']; rest ext",
    ),
    ("profile", PropertyPlacement::Everywhere, "itemMeta/profile"),
    ("pubstatus", PropertyPlacement::Everywhere, "itemMeta/pubStatus/@qcode, stat: or ttstat:"),
    (
        "renditions",
        PropertyPlacement::NewsItem,
        "contentSet/remoteContent; rest remoteContentExtProperty",
    ),
    ("replacedby", PropertyPlacement::Everywhere, "itemMeta/link[@rel='tt:replacedby']/@residref"),
    (
        "replacing",
        PropertyPlacement::Everywhere,
        "itemMeta/link[@rel='irel:previousVersion']/@residref",
    ),
    ("representationtype", PropertyPlacement::ItemExtension, "iext ttninjs:representationtype"),
    ("revisions", PropertyPlacement::ItemExtension, "iext ttninjs:revisions/…"),
    (
        "rightsinfo",
        PropertyPlacement::Everywhere,
        "rightsInfo/link[@rel='tt:linkedrights']/@href; rightsExpressionData",
    ),
    ("sector", PropertyPlacement::ContentExtension, "ext ttninjs:sector"),
    ("signals", PropertyPlacement::ItemExtension, "iext ttninjs:signals/…"),
    ("slug", PropertyPlacement::Everywhere, "contentMeta/slugline[@role='tt:slug']"),
    ("slugline", PropertyPlacement::Everywhere, "contentMeta/slugline"),
    ("source", PropertyPlacement::Everywhere, "contentMeta/infoSource[@role='tt:source']/name"),
    (
        "subject",
        PropertyPlacement::Everywhere,
        "contentMeta/subject[@type='cpnat:abstract'] or keyword; rest ext",
    ),
    ("title", PropertyPlacement::Everywhere, "itemMeta/title"),
    (
        "trustindicator",
        PropertyPlacement::Everywhere,
        "itemMeta/link[@rel='tt:trustindicator']; rest iext",
    ),
    (
        "type",
        PropertyPlacement::Everywhere,
        "itemMeta/itemClass/@qcode, ninat:; planningItem; conceptItem",
    ),
    ("urgency", PropertyPlacement::Everywhere, "contentMeta/urgency"),
    ("uri", PropertyPlacement::Everywhere, "@guid"),
    ("usageterms", PropertyPlacement::Everywhere, "rightsInfo/usageTerms"),
    ("version", PropertyPlacement::Everywhere, "@version"),
    ("versioncreated", PropertyPlacement::Everywhere, "itemMeta/versionCreated"),
    ("versionstored", PropertyPlacement::ItemExtension, "iext ttninjs:versionstored"),
    ("webprio", PropertyPlacement::ContentExtension, "ext ttninjs:webprio"),
    ("week", PropertyPlacement::ContentExtension, "ext ttninjs:week"),
    (
        "wordcount",
        PropertyPlacement::NewsItem,
        "contentSet/inlineXML/@wordcount; ext without a body",
    ),
];

/// Returns the place of a property. An unknown property is an extension of the content.
pub(super) fn placement(property: &str) -> PropertyPlacement {
    let row = PROPERTIES.binary_search_by(|(name, ..)| (*name).cmp(property));
    row.map_or(PropertyPlacement::ContentExtension, |row| PROPERTIES[row].1)
}
