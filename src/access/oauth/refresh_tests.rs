//! Refresh tokens: after any sequence of events, one family has at most one valid access token.

use std::sync::Barrier;

use proptest::prelude::*;

use super::{OAuthErrorCode, TokenSet, test_fixture::OAuthFixture};
use crate::runtime::limits::USED_REFRESH_TOKENS_MAX;

const WEB: &str = "client_id=web&client_secret=web%20secret%2B1";

/// An event in a family; the number selects one of its token sets.
#[derive(Clone, Copy, Debug)]
enum Event {
    Refresh(usize),
    /// The client presents the newest refresh token, as a correct client does.
    RefreshNewest,
    RevokeRefreshToken(usize),
    RevokeAccessToken(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::RefreshNewest),
        1 => any::<usize>().prop_map(Event::Refresh),
        1 => any::<usize>().prop_map(Event::RevokeRefreshToken),
        2 => any::<usize>().prop_map(Event::RevokeAccessToken),
    ]
}

/// The expected state of a family.
struct Model {
    sets: Vec<TokenSet>,
    is_over: bool,
    /// The token set whose access token is valid.
    live: Option<usize>,
}

impl Model {
    fn refresh_token(&self, index: usize) -> String {
        self.sets[index].refresh_token.clone().unwrap()
    }

    fn refresh(&mut self, service: &OAuthFixture, index: usize) {
        let outcome = service.refresh(&self.refresh_token(index), 1);
        if !self.is_over && index + 1 == self.sets.len() {
            self.live = Some(self.sets.len());
            self.sets.push(outcome.unwrap());
            return;
        }
        assert_eq!(outcome.err().unwrap().code, OAuthErrorCode::InvalidGrant);
        (self.is_over, self.live) = (true, None);
    }

    fn apply(&mut self, service: &OAuthFixture, event: Event) {
        let count = self.sets.len();
        match event {
            Event::RefreshNewest => self.refresh(service, count - 1),
            Event::Refresh(index) => self.refresh(service, index % count),
            Event::RevokeRefreshToken(index) => {
                let token = self.refresh_token(index % count);
                service.revoke(&format!("{WEB}&token={token}"), 1).unwrap();
                (self.is_over, self.live) = (true, None);
            }
            Event::RevokeAccessToken(index) => {
                let token = &self.sets[index % count].access_token;
                service.revoke(&format!("{WEB}&token={token}"), 1).unwrap();
                self.live = self.live.filter(|live| *live != index % count);
            }
        }
    }
}

#[test]
fn a_family_has_one_live_access_token_and_a_reused_refresh_token_ends_it() {
    let service = OAuthFixture::new();
    let config = ProptestConfig::with_cases(40);
    proptest!(config, |(events in prop::collection::vec(event(), 1..16))| {
        let sets = vec![service.log_in(0)];
        let mut model = Model { sets, is_over: false, live: Some(0) };
        for event in events {
            model.apply(&service, event);
            for (index, set) in model.sets.iter().enumerate() {
                let expected = model.live == Some(index);
                prop_assert_eq!(service.is_live(&set.access_token, 1), expected, "{:?}", event);
            }
        }
    });
}

/// Runs `work` in fifty threads at once; returns the number of successes.
fn race<T>(work: impl Fn() -> Option<T> + Sync) -> usize
where
    T: Send,
{
    let barrier = Barrier::new(50);
    std::thread::scope(|scope| {
        let start = || {
            barrier.wait();
            work().is_some()
        };
        let threads: Vec<_> = (0..50).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
    })
}

#[test]
fn of_fifty_refreshes_with_one_token_one_succeeds_and_the_others_end_the_family() {
    let service = OAuthFixture::new();
    let token = service.log_in(0).refresh_token.unwrap();
    assert_eq!(race(|| service.refresh(&token, 1).ok().map(|set| set.expires_in)), 1);
    assert_eq!((service.count("families"), service.count("access_tokens")), (0, 0));
}

#[test]
fn of_fifty_exchanges_of_one_code_one_succeeds_and_the_others_end_the_family() {
    let service = OAuthFixture::new();
    let code = service.code();
    let verifier = super::test_fixture::VERIFIER;
    let form = format!(
        "client_id=spa&grant_type=authorization_code&code={code}&code_verifier={verifier}\
         &redirect_uri=https://spa.test/cb"
    );
    assert_eq!(race(|| service.token(&form, 1).ok().map(|set| set.expires_in)), 1);
    assert_eq!((service.count("families"), service.count("access_tokens")), (0, 0));
}

#[test]
fn a_refresh_asks_for_less_but_never_for_more() {
    let service = OAuthFixture::new();
    let token = service.log_in(0).refresh_token.unwrap();
    for scope in ["roles+admin", "roles+openid", "admin"] {
        let error = service.refresh(&format!("{token}&scope={scope}"), 1).err().unwrap();
        assert_eq!(error.code, OAuthErrorCode::InvalidScope);
    }
    // The failed requests left the token unchanged.
    let set = service.refresh(&format!("{token}&scope=roles"), 2).unwrap();
    assert_eq!(set.scope, "roles");
    let info = service.run(service.oauth.user_info(&set.access_token, super::test_fixture::at(2)));
    assert_eq!(info.unwrap().unwrap()["scope"], "roles");
    // The new refresh token covers all that was granted.
    let set = service.refresh(&set.refresh_token.unwrap(), 3).unwrap();
    assert_eq!(set.scope, "roles email");
}

#[test]
fn a_refresh_token_ends_with_its_time_its_user_and_its_client() {
    let service = OAuthFixture::new();
    let refused = |outcome: Result<TokenSet, super::TokenError>| outcome.err().unwrap().code;
    let set = service.log_in(0);
    assert!(service.is_live(&set.access_token, 999) && !service.is_live(&set.access_token, 1000));
    let set = service.refresh(&set.refresh_token.unwrap(), 4999).unwrap();
    let token = set.refresh_token.unwrap();
    assert_eq!(refused(service.refresh(&token, 9999)), OAuthErrorCode::InvalidGrant);

    let client = super::test_fixture::client("web");
    let no_refresh = model::account::OAuthClient { grants: Vec::new(), ..client.clone() };
    service.change_client(no_refresh);
    assert_eq!(refused(service.refresh(&token, 5000)), OAuthErrorCode::UnauthorizedClient);
    service.change_client(model::account::OAuthClient { active: false, ..client.clone() });
    assert_eq!(refused(service.refresh(&token, 5000)), OAuthErrorCode::InvalidClient);
    assert!(!service.is_live(&set.access_token, 5000));
    service.change_client(client);
    service.disable_user();
    assert_eq!(refused(service.refresh(&token, 5000)), OAuthErrorCode::InvalidGrant);
    assert!(!service.is_live(&set.access_token, 5000));
}

#[test]
fn used_refresh_tokens_are_remembered_up_to_a_number() {
    let service = OAuthFixture::new();
    let mut token = service.log_in(0).refresh_token.unwrap();
    let write = move |tx: &crate::storage::database::WriteTx<'_>| {
        let hash = model::ContentHash::new(token.as_bytes());
        let family = tx.find_refresh_token(&hash)?.unwrap().family.id;
        for second in 0..=USED_REFRESH_TOKENS_MAX + 10 {
            let now = super::test_fixture::at(i64::try_from(second).unwrap());
            tx.mark_refresh_token_used(&model::ContentHash::new(token.as_bytes()), now)?;
            token = format!("token {second}");
            tx.write_refresh_token(&model::ContentHash::new(token.as_bytes()), family, now)?;
        }
        let old = model::ContentHash::new(b"token 0");
        assert_eq!(tx.find_refresh_token(&old)?, None);
        Ok(())
    };
    service.run(service.auth.write(write)).unwrap();
    assert_eq!(service.count("refresh_tokens"), USED_REFRESH_TOKENS_MAX + 1);
}

#[test]
fn a_grant_that_is_refreshed_again_and_again_ends_for_good() {
    let service = OAuthFixture::new();
    let mut refresh = service.log_in(0).refresh_token.unwrap();
    // Each refresh happens long before the end of its token; the grant lasts a day.
    for second in (4000..86_400).step_by(4000) {
        refresh = service.refresh(&refresh, second).unwrap().refresh_token.unwrap();
    }
    let error = service.refresh(&refresh, 86_400).err().unwrap();
    assert_eq!(error.code, OAuthErrorCode::InvalidGrant);
}
