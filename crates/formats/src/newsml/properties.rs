//! Defines the place of each document property in the XML.

use PropertyPlacement::*;

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
    ("$standard", ItemExtension, "iext ttninjs:$standard/…"),
    ("advice", ContentExtension, "ext ttninjs:advice/…"),
    ("altids", Everywhere, "contentMeta/altId[@type='tt:originaltransmissionreference']"),
    ("assignments", PlanningItem, "newsCoverageSet/newsCoverage; rest planningExtProperty"),
    ("associations", Everywhere, "an item each; packageItem//itemRef/altId[@type='tt:associd']"),
    ("body_event", ConceptItem, "concept/eventDetails/location, organiser; rest ext"),
    ("body_html5", NewsItem, "contentSet/inlineXML[@contenttype='application/xhtml+xml']"),
    ("body_pages", ContentExtension, "ext ttninjs:body_pages/…"),
    ("body_richhtml5", NewsItem, "contentSet/inlineXML[@contenttypevariant='richhtml5']"),
    ("body_sportsml", NewsItem, "contentSet/inlineData[@contenttypevariant='SportsML']"),
    ("body_text", NewsItem, "contentSet/inlineData[@contenttype='text/plain']"),
    ("byline", NewsItem, "contentMeta/creditline; creator/@literal without bylines"),
    ("bylines", Everywhere, "contentMeta/creator/name, personDetails; rest ext"),
    ("charcount", NewsItem, "contentSet/inlineXML/@charcount; ext without a body"),
    ("commissioncode", ContentExtension, "ext ttninjs:commissioncode"),
    ("commissionedby", ContentExtension, "ext ttninjs:commissionedby/0"),
    ("contentcreated", Everywhere, "contentMeta/contentCreated"),
    ("copyrightholder", Everywhere, "rightsInfo/copyrightHolder/name"),
    ("copyrightnotice", Everywhere, "rightsInfo/copyrightNotice"),
    ("date", ContentExtension, "ext ttninjs:date; dates/start of an event without datetime"),
    ("datetime", ConceptItem, "concept/eventDetails/dates/start"),
    ("description_text", Everywhere, "contentMeta/description"),
    ("description_usage", Everywhere, "contentMeta/description[@role='tt:usage']"),
    ("ednote", Everywhere, "itemMeta/edNote"),
    ("embargoed", Everywhere, "itemMeta/embargoed"),
    ("embargoedreason", ItemExtension, "iext ttninjs:embargoedreason"),
    ("enddate", ContentExtension, "ext ttninjs:enddate; dates/end without enddatetime"),
    ("enddatetime", ConceptItem, "concept/eventDetails/dates/end"),
    ("event", Everywhere, "contentMeta/subject[@type='cpnat:event']; rest ext"),
    ("expires", Everywhere, "itemMeta/expires"),
    ("firstcreated", Everywhere, "itemMeta/firstCreated"),
    ("fixture", Everywhere, "contentMeta/subject[@type='tt:story']; rest ext"),
    ("genre", NewsItem, "contentMeta/genre; rest ext"),
    ("headline", Everywhere, "contentMeta/headline"),
    ("infosource", Everywhere, "contentMeta/infoSource; rest ext"),
    ("job", ItemExtension, "iext ttninjs:job"),
    ("language", Everywhere, "contentMeta/language/@tag and the item's xml:lang"),
    ("located", Everywhere, "contentMeta/located/name"),
    ("mimetype", ContentExtension, "ext ttninjs:mimetype"),
    ("newsvalue", ContentExtension, "ext ttninjs:newsvalue"),
    ("object", Everywhere, "contentMeta/subject[@type='cpnat:object']; rest ext"),
    ("organisation", Everywhere, "contentMeta/subject[@type='cpnat:organisation']; rest ext"),
    (
        "originaltransmissionreference",
        Everywhere,
        "contentMeta/altId[@type='tt:transmissionreference']",
    ),
    ("person", Everywhere, "contentMeta/subject[@type='cpnat:person']; rest ext"),
    (
        "place",
        Everywhere,
        "contentMeta/subject[@type='cpnat:geoArea']; position in assert; rest ext",
    ),
    ("product", Everywhere, "contentMeta/subject[@type='tt:product']; rest ext"),
    ("profile", Everywhere, "itemMeta/profile"),
    ("pubstatus", Everywhere, "itemMeta/pubStatus/@qcode, stat: or ttstat:"),
    ("renditions", NewsItem, "contentSet/remoteContent; rest remoteContentExtProperty"),
    ("replacedby", Everywhere, "itemMeta/link[@rel='tt:replacedby']/@residref"),
    ("replacing", Everywhere, "itemMeta/link[@rel='irel:previousVersion']/@residref"),
    ("representationtype", ItemExtension, "iext ttninjs:representationtype"),
    ("revisions", ItemExtension, "iext ttninjs:revisions/…"),
    (
        "rightsinfo",
        Everywhere,
        "rightsInfo/link[@rel='tt:linkedrights']/@href; rightsExpressionData",
    ),
    ("sector", ContentExtension, "ext ttninjs:sector"),
    ("signals", ItemExtension, "iext ttninjs:signals/…"),
    ("slug", Everywhere, "contentMeta/slugline[@role='tt:slug']"),
    ("slugline", Everywhere, "contentMeta/slugline"),
    ("source", Everywhere, "contentMeta/infoSource[@role='tt:source']/name"),
    ("subject", Everywhere, "contentMeta/subject[@type='cpnat:abstract'] or keyword; rest ext"),
    ("title", Everywhere, "itemMeta/title"),
    ("trustindicator", Everywhere, "itemMeta/link[@rel='tt:trustindicator']; rest iext"),
    ("type", Everywhere, "itemMeta/itemClass/@qcode, ninat:; planningItem; conceptItem"),
    ("urgency", Everywhere, "contentMeta/urgency"),
    ("uri", Everywhere, "@guid"),
    ("usageterms", Everywhere, "rightsInfo/usageTerms"),
    ("version", Everywhere, "@version"),
    ("versioncreated", Everywhere, "itemMeta/versionCreated"),
    ("versionstored", ItemExtension, "iext ttninjs:versionstored"),
    ("webprio", ContentExtension, "ext ttninjs:webprio"),
    ("week", ContentExtension, "ext ttninjs:week"),
    ("wordcount", NewsItem, "contentSet/inlineXML/@wordcount; ext without a body"),
];

/// Returns the place of a property. An unknown property is an extension of the content.
pub(super) fn placement(property: &str) -> PropertyPlacement {
    let row = PROPERTIES.binary_search_by(|(name, ..)| (*name).cmp(property));
    row.map_or(ContentExtension, |row| PROPERTIES[row].1)
}
