vcl 4.1;

# Varnish in front of Wirephoto: keeps open media, never what is somebody's own, and forgets by key.
# Needs the module xkey (Debian: varnish-modules). docs/operations/cdn.md says which settings belong to it;
# server.trusted_proxies=127.0.0.1 is one of them.

import std;
import xkey;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
    # The service waits for a rendition for up to server.request_timeout_s.
    .first_byte_timeout = 65s;
    .between_bytes_timeout = 60s;
    .probe = {
        .url = "/health/ready";
        .interval = 1s;
        .timeout = 1s;
        .window = 3;
        .threshold = 2;
        .initial = 2;
    }
}

# Who may have keys forgotten: Wirephoto itself, over the port that only this machine reaches.
acl purgers {
    "127.0.0.1";
    "::1";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) {
            return (synth(403, "Forbidden"));
        }
        if (!req.http.Surrogate-Key) {
            return (synth(400, "No keys"));
        }
        # Gone at once, also as something stale to fall back on.
        set req.http.X-Purged = xkey.purge(req.http.Surrogate-Key);
        return (synth(200, "Purged " + req.http.X-Purged));
    }
    # Tells of the service, not of pictures: for whoever reaches its own port.
    if (req.url ~ "^/metrics([/?]|$)") {
        return (synth(404, "Not found"));
    }
    # Whoever says who he is gets an answer of his own: never out of the cache, never into it.
    if (req.url !~ "^/media/" || req.http.Authorization || req.http.Cookie || req.url ~ "\?") {
        return (pass);
    }
    # The format of an address that ends in .auto depends on Accept. Browsers write it in many ways; three values
    # are left, so that the cache holds three files of a picture.
    if (req.url ~ "(?i)\.auto$") {
        if (req.http.Accept ~ "(?i)image/avif(?!\s*;\s*q=0(\.0*)?\s*(,|$))") {
            set req.http.Accept = "image/avif,*/*";
        } elsif (req.http.Accept ~ "(?i)image/webp(?!\s*;\s*q=0(\.0*)?\s*(,|$))") {
            set req.http.Accept = "image/webp,*/*";
        } else {
            set req.http.Accept = "*/*";
        }
    }
    # While the service is well, what is stale is not given out.
    if (std.healthy(req.backend_hint)) {
        set req.grace = 0s;
    }
}

sub vcl_backend_fetch {
    # Long polls take 300 s at most.
    if (bereq.url !~ "^/media/") {
        set bereq.first_byte_timeout = 310s;
    }
}

sub vcl_backend_response {
    # A day, for when the service is away; and its entity tag, to ask whether something changed.
    set beresp.grace = 24h;
    set beresp.keep = 24h;
    set beresp.http.xkey = beresp.http.Surrogate-Key;
    # Varnish by itself keeps nothing that is private, no-store or no-cache.
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
}

sub vcl_deliver {
    unset resp.http.xkey;
    unset resp.http.Surrogate-Key;
    unset resp.http.Cache-Tag;
    if (obj.hits > 0) {
        set resp.http.X-Cache = "HIT";
    } else {
        set resp.http.X-Cache = "MISS";
    }
}
