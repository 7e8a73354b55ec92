//! Where each property of the document stands in the XML.

/// How a property is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In its own element or attribute of every item.
    Everywhere,
    /// In its own element of a `newsItem`; an extension property of the other two.
    NewsItem,
    /// In its own element of a `planningItem`; an extension property of the other two.
    PlanningItem,
    /// In its own element of a `conceptItem`; an extension property of the other two.
    ConceptItem,
    /// An extension property of `itemMeta`: about the item, not its content.
    ItemExtension,
    /// An extension property of `contentMeta`.
    ContentExtension,
}

/// Every property of schema 1.6 with its place and its path below the item's element, by name.
///
/// A value that the type at its place cannot hold (a line end in a one-line text, a malformed
/// date) stands in an extension property too. `ext` is short for `contentMetaExtProperty`, `iext`
/// for `itemMetaExtProperty`; both are told apart by `@rel`, `ttninjs:` and the property's path.
pub const PROPERTIES: &[(&str, Place, &str)] = &[
    ("$standard", Place::ItemExtension, "iext ttninjs:$standard/…"),
    ("advice", Place::ContentExtension, "ext ttninjs:advice/…"),
    ("altids", Place::Everywhere, "contentMeta/altId[@type='tt:originaltransmissionreference']"),
    ("assignments", Place::PlanningItem, "newsCoverageSet/newsCoverage; rest planningExtProperty"),
    (
        "associations",
        Place::Everywhere,
        "an item each; packageItem//itemRef/altId[@type='tt:associd']",
    ),
    ("body_event", Place::ConceptItem, "concept/eventDetails/location, organiser; rest ext"),
    ("body_html5", Place::NewsItem, "contentSet/inlineXML[@contenttype='application/xhtml+xml']"),
    ("body_pages", Place::ContentExtension, "ext ttninjs:body_pages/…"),
    ("body_richhtml5", Place::NewsItem, "contentSet/inlineXML[@contenttypevariant='richhtml5']"),
    ("body_sportsml", Place::NewsItem, "contentSet/inlineData[@contenttypevariant='SportsML']"),
    ("body_text", Place::NewsItem, "contentSet/inlineData[@contenttype='text/plain']"),
    ("byline", Place::NewsItem, "contentMeta/creditline; creator/@literal without bylines"),
    ("bylines", Place::Everywhere, "contentMeta/creator/name, personDetails; rest ext"),
    ("charcount", Place::NewsItem, "contentSet/inlineXML/@charcount; ext without a body"),
    ("commissioncode", Place::ContentExtension, "ext ttninjs:commissioncode"),
    ("commissionedby", Place::ContentExtension, "ext ttninjs:commissionedby/0"),
    ("contentcreated", Place::Everywhere, "contentMeta/contentCreated"),
    ("copyrightholder", Place::Everywhere, "rightsInfo/copyrightHolder/name"),
    ("copyrightnotice", Place::Everywhere, "rightsInfo/copyrightNotice"),
    (
        "date",
        Place::ContentExtension,
        "ext ttninjs:date; dates/start of an event without datetime",
    ),
    ("datetime", Place::ConceptItem, "concept/eventDetails/dates/start"),
    ("description_text", Place::Everywhere, "contentMeta/description"),
    ("description_usage", Place::Everywhere, "contentMeta/description[@role='tt:usage']"),
    ("ednote", Place::Everywhere, "itemMeta/edNote"),
    ("embargoed", Place::Everywhere, "itemMeta/embargoed"),
    ("embargoedreason", Place::ItemExtension, "iext ttninjs:embargoedreason"),
    ("enddate", Place::ContentExtension, "ext ttninjs:enddate; dates/end without enddatetime"),
    ("enddatetime", Place::ConceptItem, "concept/eventDetails/dates/end"),
    ("event", Place::Everywhere, "contentMeta/subject[@type='cpnat:event']; rest ext"),
    ("expires", Place::Everywhere, "itemMeta/expires"),
    ("firstcreated", Place::Everywhere, "itemMeta/firstCreated"),
    ("fixture", Place::Everywhere, "contentMeta/subject[@type='tt:story']; rest ext"),
    ("genre", Place::NewsItem, "contentMeta/genre; rest ext"),
    ("headline", Place::Everywhere, "contentMeta/headline"),
    ("infosource", Place::Everywhere, "contentMeta/infoSource; rest ext"),
    ("job", Place::ItemExtension, "iext ttninjs:job"),
    ("language", Place::Everywhere, "contentMeta/language/@tag and the item's xml:lang"),
    ("located", Place::Everywhere, "contentMeta/located/name"),
    ("mimetype", Place::ContentExtension, "ext ttninjs:mimetype"),
    ("newsvalue", Place::ContentExtension, "ext ttninjs:newsvalue"),
    ("object", Place::Everywhere, "contentMeta/subject[@type='cpnat:object']; rest ext"),
    (
        "organisation",
        Place::Everywhere,
        "contentMeta/subject[@type='cpnat:organisation']; rest ext",
    ),
    (
        "originaltransmissionreference",
        Place::Everywhere,
        "contentMeta/altId[@type='tt:transmissionreference']",
    ),
    ("person", Place::Everywhere, "contentMeta/subject[@type='cpnat:person']; rest ext"),
    (
        "place",
        Place::Everywhere,
        "contentMeta/subject[@type='cpnat:geoArea']; position in assert; rest ext",
    ),
    ("product", Place::Everywhere, "contentMeta/subject[@type='tt:product']; rest ext"),
    ("profile", Place::Everywhere, "itemMeta/profile"),
    ("pubstatus", Place::Everywhere, "itemMeta/pubStatus/@qcode, stat: or ttstat:"),
    ("renditions", Place::NewsItem, "contentSet/remoteContent; rest remoteContentExtProperty"),
    ("replacedby", Place::Everywhere, "itemMeta/link[@rel='tt:replacedby']/@residref"),
    ("replacing", Place::Everywhere, "itemMeta/link[@rel='irel:previousVersion']/@residref"),
    ("representationtype", Place::ItemExtension, "iext ttninjs:representationtype"),
    ("revisions", Place::ItemExtension, "iext ttninjs:revisions/…"),
    (
        "rightsinfo",
        Place::Everywhere,
        "rightsInfo/link[@rel='tt:linkedrights']/@href; rightsExpressionData",
    ),
    ("sector", Place::ContentExtension, "ext ttninjs:sector"),
    ("signals", Place::ItemExtension, "iext ttninjs:signals/…"),
    ("slug", Place::Everywhere, "contentMeta/slugline[@role='tt:slug']"),
    ("slugline", Place::Everywhere, "contentMeta/slugline"),
    ("source", Place::Everywhere, "contentMeta/infoSource[@role='tt:source']/name"),
    (
        "subject",
        Place::Everywhere,
        "contentMeta/subject[@type='cpnat:abstract'] or keyword; rest ext",
    ),
    ("title", Place::Everywhere, "itemMeta/title"),
    ("trustindicator", Place::Everywhere, "itemMeta/link[@rel='tt:trustindicator']; rest iext"),
    ("type", Place::Everywhere, "itemMeta/itemClass/@qcode, ninat:; planningItem; conceptItem"),
    ("urgency", Place::Everywhere, "contentMeta/urgency"),
    ("uri", Place::Everywhere, "@guid"),
    ("usageterms", Place::Everywhere, "rightsInfo/usageTerms"),
    ("version", Place::Everywhere, "@version"),
    ("versioncreated", Place::Everywhere, "itemMeta/versionCreated"),
    ("versionstored", Place::ItemExtension, "iext ttninjs:versionstored"),
    ("webprio", Place::ContentExtension, "ext ttninjs:webprio"),
    ("week", Place::ContentExtension, "ext ttninjs:week"),
    ("wordcount", Place::NewsItem, "contentSet/inlineXML/@wordcount; ext without a body"),
];

/// The place of a property. One that the schema does not know is an extension of the content.
pub(super) fn place(property: &str) -> Place {
    let row = PROPERTIES.binary_search_by(|(name, ..)| (*name).cmp(property));
    row.map_or(Place::ContentExtension, |row| PROPERTIES[row].1)
}
