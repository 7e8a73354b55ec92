"""Signs in through Authlib's OAuth2Session: code with PKCE for each way in which a client
authenticates, implicit, password, refresh, revocation; id tokens are checked with joserfc, the
JOSE library that Authlib is built on, and Authlib's own OpenID Connect claims.

    python oauth.py '{"base": "http://127.0.0.1:8080"}'

The server has imported accounts.json, and its public URL is `base`. Can be run repeatedly.
"""

import json
import pathlib
import sys
from urllib.parse import parse_qs, urlsplit

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc6749.errors import MismatchingStateException
from authlib.oidc.core import CodeIDToken, ImplicitIDToken
from joserfc import jwt
from joserfc.errors import InvalidClaimError
from joserfc.jwk import KeySet

from browser import authorize, expect

TOKEN_VALIDITY_S = 7 * 24 * 60 * 60
EVERYTHING = "openid email roles user customer profile collection"

GIVEN = json.loads(sys.argv[1])
BASE = GIVEN["base"]
BESIDE = pathlib.Path(__file__).with_name("accounts.json")
ACCOUNTS = json.loads(pathlib.Path(GIVEN.get("accounts", BESIDE)).read_text("utf-8"))
CLIENTS = {row["client_id"]: row for row in ACCOUNTS["clients"]}
USERS = {row["userName"]: row for row in ACCOUNTS["users"]}
EDITOR = USERS["suite-editor"]
REDIRECT = CLIENTS["suite-basic"]["redirect_uris"][0]


def expect_error(kind, call, what, code=None):
    """`call` raises `kind`, and with `code` that error code of RFC 6749."""
    try:
        answer = call()
    except kind as error:
        if code is not None:
            expect(error.error, code, what)
        return
    raise AssertionError(f"{what}: {answer!r}")


def session(client_id, method=None, scope=EVERYTHING):
    """A session of Authlib for a client of the accounts file."""
    return OAuth2Session(
        client_id, CLIENTS[client_id].get("client_secret"), scope=scope, redirect_uri=REDIRECT,
        token_endpoint_auth_method=method, revocation_endpoint_auth_method=method,
        code_challenge_method="S256",
    )


def check_id_token(server, client, token, nonce, kind):
    """Checks the signature by the published keys, then every claim, and that a wrong one is detected."""
    keys = KeySet.import_key_set(requests.get(server["jwks_uri"]).json())
    decoded = jwt.decode(token["id_token"], keys, algorithms=["RS256"])
    options = {
        "iss": {"essential": True, "value": server["issuer"]},
        "aud": {"essential": True, "value": client.client_id},
        "sub": {"essential": True},
        "at_hash": {"essential": True},
    }
    params = {
        "client_id": client.client_id, "access_token": token["access_token"], "nonce": nonce,
    }
    claims = kind(decoded.claims, decoded.header, options, params)
    claims.validate(leeway=5)
    for name, wrong in (("access_token", "other"), ("nonce", "other")):
        if params[name] is not None:
            other = kind(decoded.claims, decoded.header, dict(options), {**params, name: wrong})
            expect_error(InvalidClaimError, other.validate, f"a wrong {name}")
    return claims


def check_token(server, client, token, nonce, kind=CodeIDToken):
    """Checks a token set, and the response of the user endpoint to its access token."""
    expect(token["token_type"], "Bearer", "token_type")
    expect(int(token["expires_in"]), TOKEN_VALIDITY_S, "expires_in")
    claims = check_id_token(server, client, token, nonce, kind)
    answer = client.get(server["userinfo_endpoint"])
    expect(answer.status_code, 200, "userinfo")
    seen = answer.json()
    expect(seen["sub"], claims["sub"], "sub")
    expect(sorted(seen["scope"].split()), sorted(client.scope.split()), "scope")
    expect(seen["roles"], EDITOR["roles"], "roles")
    expect(seen["email"], EDITOR["emailAddress"], "email")


def check_dead(server, client, what):
    """The access token of the session is no longer accepted."""
    answer = client.get(server["userinfo_endpoint"])
    expect(answer.status_code, 401, what)
    challenge = answer.headers.get("www-authenticate", "")
    expect(challenge.startswith("Bearer"), True, challenge)


def check_code(server, client):
    """Code flow with PKCE, refresh, revocation."""
    browser = requests.Session()
    nonce, verifier = generate_token(), generate_token(48)
    url, state = client.create_authorization_url(
        server["authorization_endpoint"], code_verifier=verifier, nonce=nonce
    )
    callback, pages = authorize(browser, url, REDIRECT, EDITOR)
    expect(parse_qs(urlsplit(callback).query)["iss"], [server["issuer"]], "iss in the answer")
    arguments = {"authorization_response": callback, "code_verifier": verifier}
    endpoint = server["token_endpoint"]
    expect_error(
        MismatchingStateException,
        lambda: client.fetch_token(endpoint, state="other", **arguments), "another state",
    )
    token = client.fetch_token(endpoint, state=state, **arguments)
    check_token(server, client, token, nonce)
    again = session(client.client_id, client.token_endpoint_auth_method)
    again.token = dict(token)

    refreshed = client.refresh_token(endpoint)
    expect(refreshed["refresh_token"] == token["refresh_token"], False, "same refresh token")
    check_token(server, client, refreshed, None)
    check_dead(server, again, "the access token before the refresh")

    revoke = server["revocation_endpoint"]
    for hint in ("access_token", "refresh_token"):
        answer = client.revoke_token(revoke, token=refreshed[hint], token_type_hint=hint)
        expect(answer.status_code, 200, f"revoking the {hint}")
    check_dead(server, client, "a revoked access token")
    expect_error(
        OAuthError, lambda: client.refresh_token(endpoint), "a revoked refresh token",
        "invalid_grant",
    )
    expect_error(
        OAuthError, lambda: client.fetch_token(endpoint, state=state, **arguments),
        "a used code", "invalid_grant",
    )
    return pages


def check_implicit(server):
    """The response is in the fragment: with an id token, and without."""
    browser = requests.Session()
    for response_type in ("id_token token", "token"):
        client, nonce = session("suite-page"), generate_token()
        url, state = client.create_authorization_url(
            server["authorization_endpoint"], response_type=response_type, nonce=nonce
        )
        callback, _ = authorize(browser, url, REDIRECT, EDITOR)
        token = client.fetch_token(authorization_response=callback, state=state)
        expect(token["iss"], server["issuer"], "iss in the answer")
        expect("refresh_token" in token, False, "a refresh token in the fragment")
        expect("id_token" in token, "id_token" in response_type, "id_token")
        if "id_token" in token:
            check_token(server, client, token, nonce, ImplicitIDToken)
        else:
            expect(client.get(server["userinfo_endpoint"]).status_code, 200, "userinfo")


def check_password(server):
    """Password grant; a wrong password gives the error of RFC 6749."""
    client, endpoint = session("suite-post", "client_secret_post"), server["token_endpoint"]
    who = {"username": EDITOR["userName"], "password": EDITOR["password"]}
    token = client.fetch_token(endpoint, **who)
    check_token(server, client, token, None)
    check_token(server, client, client.refresh_token(endpoint), None)
    who["password"] = "wrong"
    expect_error(
        OAuthError, lambda: client.fetch_token(endpoint, **who), "a wrong password",
        "invalid_grant",
    )


def main():
    server = requests.get(f"{BASE}/.well-known/openid-configuration").json()
    expect(server["issuer"], BASE, "issuer")
    ways = {
        "suite-basic": "client_secret_basic",
        "suite-post": "client_secret_post",
        "suite-public": "none",
    }
    pages = {name: check_code(server, session(name, method)) for name, method in ways.items()}
    check_implicit(server)
    check_password(server)
    print(json.dumps({"script": "oauth", "pages": pages}))


main()
