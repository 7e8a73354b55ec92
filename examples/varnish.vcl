vcl 4.1;

# Varnish in front of Wirephoto: caches open media, never private responses, and purges by key. Needs
# the module xkey (Debian: varnish-modules), server.trusted_proxies=127.0.0.1 and the settings in
# docs/operations/cdn.md.

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

# Allowed to purge: Wirephoto itself, over the port that only this machine reaches.
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
        # Removed at once, not kept as stale fallbacks.
        set req.http.X-Purged = xkey.purge(req.http.Surrogate-Key);
        return (synth(200, "Purged " + req.http.X-Purged));
    }
    # Not for the public: scrape it at the service's own port.
    if (req.url ~ "^/metrics([/?]|$)") {
        return (synth(404, "Not found"));
    }
    # Requests with credentials or a query bypass the cache: they neither read nor fill it.
    if (req.url !~ "^/media/" || req.http.Authorization || req.http.Cookie || req.url ~ "\?") {
        return (pass);
    }
    # The format of a URL that ends in .auto depends on Accept, which differs between browsers. Reduce it to two
    # values, so that the cache stores two files per picture.
    if (req.url ~ "(?i)\.auto$") {
        if (req.http.Accept ~ "(?i)image/avif(?!\s*;\s*q=0(\.0*)?\s*(,|$))") {
            set req.http.Accept = "image/avif,*/*";
        } else {
            set req.http.Accept = "*/*";
        }
    }
    # While the service is healthy, serve nothing stale.
    if (std.healthy(req.backend_hint)) {
        set req.grace = 0s;
    }
}

sub vcl_backend_fetch {
    # Long polls last 300 s at most.
    if (bereq.url !~ "^/media/") {
        set bereq.first_byte_timeout = 310s;
    }
}

sub vcl_backend_response {
    # Serve stale for a day while the service is down; keep the ETag to revalidate.
    set beresp.grace = 24h;
    set beresp.keep = 24h;
    set beresp.http.xkey = beresp.http.Surrogate-Key;
    # Varnish's built-in VCL caches nothing that is private, no-store or no-cache.
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
