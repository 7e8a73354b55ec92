//! `wirephoto serve`: runs the server.

use clap::Args;

use super::{CommandFailure, CommonArgs, demo, print_line};
use crate::app::{self, OpenArchive, ServerLaunch, ServerProcess, allow_connections};
use crate::cluster::membership::ClusterLease;
use crate::runtime::config::{self, Config, RawSettings};
use crate::runtime::error::ErrorKind;
use crate::runtime::telemetry::{LogSetup, Logs};

/// The arguments of `wirephoto serve`.
#[derive(Args, Debug)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Address and port to listen on.
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Base URL of the links in documents and pages.
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Role of this process among several over one archive: all, web, worker or edge.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Ingests the demo archive first. Its accounts are publicly known, so it is served to this machine
    /// only.
    #[arg(long)]
    demo: bool,
    /// Serves demo accounts to other machines too: everyone who reaches the service can log in and
    /// administer it.
    #[arg(long)]
    demo_public: bool,
}

pub(super) fn serve(args: &ServeArgs) -> Result<(), CommandFailure> {
    let sources = args.common.sources(&[
        ("server.listen", &args.listen),
        ("server.public_url", &args.public_url),
        ("server.role", &args.role),
    ]);
    let (config, values) = config::load(&sources)?;
    // Checked first: nothing may be created for a demo that is refused.
    if args.demo && !args.demo_public {
        app::refuse_public_demo(&config)
            .map_err(|error| CommandFailure::Usage(error.to_string()))?;
    }
    // Fails before a data directory is created.
    let demo_folder = if args.demo { Some(app::find_demo(&config)?) } else { None };
    let telemetry = &config.telemetry;
    let level = telemetry.log_level.as_str();
    let setup = LogSetup { format: telemetry.log_format, level, file: &telemetry.log_file };
    let logs = Logs::start(setup).map_err(|error| CommandFailure::Usage(error.to_string()))?;
    log_settings(&config, &values);
    allow_connections(config.server.connections_max);
    let archive = OpenArchive::open_to_serve(&config)?;
    if !args.demo_public {
        app::refuse_published_logins(&archive, &config).map_err(|error| {
            // A database that fails is no wrong setting.
            if error.kind() == ErrorKind::InvalidArgument {
                CommandFailure::Usage(error.to_string())
            } else {
                CommandFailure::Failed(error)
            }
        })?;
    }
    if !args.demo
        && let Some(warning) = app::demo_warning(&archive.db)?
    {
        tracing::warn!("{warning}");
    }
    let (node, keeper) = archive.join_cluster(&config)?;
    if let Some(demo_folder) = &demo_folder {
        // Several nodes may start at once: the first ingests the demo under the lease, the others find it
        // complete.
        let count = node.run_exclusively(ClusterLease::Starting, || {
            app::ingest_demo(&archive, &config, demo_folder)
        })?;
        if count > 0 {
            print_line(&format!("ingested {count} items of the demo archive"));
        }
    }
    let server =
        ServerProcess::start(ServerLaunch { config, sources, logs }, archive, node, keeper)?;
    print_line(&format!("listening on {}", server.url()));
    if let Some(url) = server.admin_url() {
        print_line(&format!("metrics at {url}/metrics"));
    }
    if args.demo {
        print_line(&demo::start_hints(server.public_url()));
    }
    server.run()?;
    Ok(())
}

/// Logs the settings file and the names of the settings that differ from their defaults, and warns of values
/// without effect. Values are not logged, because some are secret.
fn log_settings(config: &Config, values: &RawSettings) {
    let rows = config.rows(values).into_iter();
    let changed = rows.filter(|row| row.value != row.default).map(|row| row.name);
    let changed: Vec<_> = changed.collect();
    let file = values.file().map(|file| file.display().to_string());
    tracing::info!(
        settings_file = file.as_deref().unwrap_or("none"),
        changed = changed.join(" "),
        "settings loaded"
    );
    for warning in values.warnings() {
        tracing::warn!("{warning}");
    }
}
