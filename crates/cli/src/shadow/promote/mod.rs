//! `evenkeel shadow promote`: the shadow's objects take the place of those in effect (SH-5).

mod api;
mod files;

use anyhow::{Context, Result, bail};
use clap::Args;
use evenkeel_api::annotations::MODE;
use evenkeel_gateway::Config;
use tokio::runtime;

use super::{LIMITS, Shadows, shadows};
use crate::exit::Exit;
use crate::remote::{ClusterFlags, GatewayFlags, Server, cluster};
use crate::terminal::{print, printable};

use api::ApiPromotion;
use files::Promotion;

const EXAMPLES: &str = "\
Examples:
  See the commands that let the shadow's objects take the place of those in effect:
    evenkeel shadow promote
  Run them, on the machine of the gateway and in its working directory:
    evenkeel shadow promote --write
  The shadow's objects are those of an API that have evenkeel.dev/mode: audit:
    evenkeel shadow promote --kubeconfig data/kubeconfig --write";

/// Lets the shadow's objects take the place of those in effect, in one step.
///
/// Where the objects are files, the commands that do it are printed, and run with --write. The gateway notices the change by itself. Requests
/// that run go on, and requests that wait keep their places. The objects that were in effect are kept beside the new ones, with the suffix
/// `.before`.
///
/// Where they are objects of an API, with the annotation `evenkeel.dev/mode: audit`, name it with --kubeconfig. One write, which is printed, lets all of them
/// govern. With --write it is done, and the objects are then written into the places that they have.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(super) struct Promote {
    #[command(flatten)]
    gateway: GatewayFlags,
    #[command(flatten)]
    api: ClusterFlags,
    /// Run the commands instead of printing them. Paths are those of the gateway's settings, from its working directory.
    #[arg(long)]
    write: bool,
}

// === impl Promote ===

impl Promote {
    pub(super) fn run(&self) -> Result<Exit> {
        let server = Server::new(&self.gateway.access()?, LIMITS)?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
        let text = if self.api.is_given() {
            let api = Server::new(&self.api.access()?, cluster::LIMITS)?;
            runtime.block_on(self.promote_in(&api, &server))?
        } else {
            let (config, shadows) = runtime.block_on(state(&server))?;
            self.promote_files(&promotion_of(&config)?, &shadows)?
        };
        print(text)?;
        Ok(Exit::Success)
    }

    fn promote_files(&self, promotion: &Promotion, shadows: &Shadows) -> Result<String> {
        let mut text = summary(shadows);
        if self.write {
            promotion.write()?;
            text += &format!("{} has the objects of the shadow now\n", promotion.to().display());
        } else {
            promotion.commands().iter().for_each(|command| text += &format!("{command}\n"));
        }
        Ok(text)
    }

    /// Promotes a shadow whose objects are those of an API.
    async fn promote_in(&self, api: &Server, gateway: &Server) -> Result<String> {
        let Some(promotion) = ApiPromotion::read(api).await? else {
            bail!("no object of {} has the annotation `{MODE}: audit`; there is nothing to promote", api.url())
        };
        // Once its objects govern there is no shadow any more, and what is left is to write the objects into their places.
        let mut text = if promotion.is_begun() { String::new() } else { summary(&shadows(gateway).await?) };
        if self.write {
            promotion.write(api).await?;
            text += &format!("{} objects of the shadow govern now\n", promotion.objects());
        } else if promotion.is_begun() {
            text += "# The objects of the shadow govern already; --write writes them into the places that they have.\n";
        } else {
            text += &format!("{}\n", promotion.command());
        }
        Ok(text)
    }
}

/// The settings of a gateway, and the reports of its shadow: a gateway without a shadow has nothing to promote.
async fn state(server: &Server) -> Result<(Config, Shadows)> {
    let shadows = shadows(server).await?;
    let settings = crate::remote::page(server, "/config").await?;
    let text = std::str::from_utf8(&settings).context("the gateway's settings are not valid UTF-8")?;
    let config = Config::parse("the gateway's settings", text).context("cannot read the gateway's settings")?;
    Ok((config, shadows))
}

/// The files of the settings.
fn promotion_of(config: &Config) -> Result<Promotion> {
    let of_shadow = config.shadow.as_ref().and_then(|shadow| shadow.objects.clone());
    let Some(from) = of_shadow else {
        if config.shadow.is_none() {
            bail!(
                "the shadow's objects are those with the annotation `{MODE}: audit`; if they are of an API, name it with --kubeconfig (that of a gateway is \
                 `kubeconfig` in its data directory); in files, remove the annotation, and the objects that they replace"
            )
        }
        bail!(
            "the shadow has the objects in effect, and differs only by `shadow.concurrency` or `shadow.borrowing`; set `concurrency` or \
             `flowControl.borrowing` to these"
        )
    };
    match &config.objects {
        Some(to) => Ok(Promotion::new(from, to.clone())),
        None if config.short_form().is_some() => bail!(
            "the objects in effect are `levels` and `match` of the settings file; replace these by those of {}, and reload the settings \
             with SIGHUP",
            from.display()
        ),
        None => bail!(
            "the gateway reads no objects from files; start it with `--objects {0}`, or apply {0} to its API with kubectl",
            from.display()
        ),
    }
}

/// The changes, as comments of a shell.
fn summary(shadows: &Shadows) -> String {
    let line = |(service, report): (Option<&str>, &evenkeel::shadow::ShadowReport)| {
        let service = service.map_or_else(String::new, |service| format!("{}: ", printable(service)));
        format!("# {service}{}\n", printable(&report.summary))
    };
    shadows.parts().map(line).collect()
}
