//! Tests that words which rows and documents hold stay the same: archives have them already.

use strum::VariantNames;

use crate::account::{
    AgreementType, Approver, ChannelMethod, DeliveryState, DeviceKind, GrantType, LicensePeriod,
    MessageState, MessageTransport, NotificationKind, PasswordLinkKind, Scope,
};
use crate::item::{MetadataField, PubStatus};

#[test]
fn stored_words_stay_the_same() {
    for (words, stored) in [
        (AgreementType::VARIANTS, "Subscription Direct Normal Prepaid"),
        (Approver::VARIANTS, "owner admin"),
        (ChannelMethod::VARIANTS, "download directory email ftp ftps sftp s3 webhook"),
        (DeliveryState::VARIANTS, "queued sending delivered failed"),
        (DeviceKind::VARIANTS, "ios ios-sandbox android"),
        (GrantType::VARIANTS, "authorization_code implicit password refresh_token"),
        (LicensePeriod::VARIANTS, "Year Month Single"),
        (MessageState::VARIANTS, "waiting sending parked"),
        (MessageTransport::VARIANTS, "mail apple google"),
        (
            MetadataField::VARIANTS,
            "headline description_text byline credit source slugline person organisation city country keyword \
             copyrightholder copyrightnotice usageterms ednote language urgency embargoed product",
        ),
        (NotificationKind::VARIANTS, "mobile email scheduled-email stream"),
        (PasswordLinkKind::VARIANTS, "invitation reset"),
        (PubStatus::VARIANTS, "usable replaced commissioned withheld canceled"),
        (Scope::VARIANTS, "openid roles email user customer profile collection admin"),
    ] {
        assert_eq!(words.join(" "), stored);
    }
}
