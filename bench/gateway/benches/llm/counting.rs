//! What the gateway counts where servers report nothing, beside what they have generated. One request in ten asks for usage.

use std::io;

use evenkeel_bars::{Bar, Bars};
use tokio::task::JoinSet;

use crate::chat::Chat;
use crate::runtime;
use crate::server::Server;
use crate::tokens::between;

/// Tenants that ask for nothing.
const SILENT: [&str; 3] = ["silent-1", "silent-2", "silent-3"];
/// The one that asks for usage.
const ASKING: &str = "asking";
/// Of each silent tenant; the asking one has a third of that.
const REQUESTS: usize = 60;

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let models = Server::models()?;
    let gateway = Server::gateway(models.address(), "")?;
    let target = gateway.address();
    let worst = runtime()?.block_on(async {
        let chats = |tenant: &'static str, count: usize, seed: u64| {
            let mut random = fastrand::Rng::with_seed(seed);
            let chats: JoinSet<io::Result<_>> = (0..count)
                .map(|_| {
                    let tokens = between(&(20.0..400.0), &mut random);
                    let chat = Chat { tenant, prompt_tokens: 50, tokens, with_usage: tenant == ASKING };
                    async move { chat.finish(target).await }
                })
                .collect();
            chats
        };
        // The first ones teach.
        chats(ASKING, 8, 1).join_all().await.into_iter().collect::<io::Result<Vec<_>>>()?;
        let mut all = vec![chats(ASKING, REQUESTS / 3, 2)];
        all.extend((3..).zip(SILENT).map(|(seed, tenant)| chats(tenant, REQUESTS, seed)));
        for chats in all {
            chats.join_all().await.into_iter().collect::<io::Result<Vec<_>>>()?;
        }
        let status = models.status().await?;
        let mut worst = 0.0_f64;
        for tenant in SILENT {
            let user = format!("user=\"{tenant}\"");
            let counted = gateway.metric("evenkeel_llm_tokens_total{", &["kind=\"output\"", &user]).await?;
            let [_, generated] = status.tenants.get(tenant).copied().unwrap_or_default();
            println!("{tenant}: {counted:.0} tokens counted, {generated} generated");
            worst = worst.max((counted / generated as f64 - 1.0).abs());
        }
        io::Result::Ok(worst)
    })?;
    bars.add(
        "llm counting without usage: error of a tenant's tokens, the worst of three",
        worst * 100.0,
        "%",
        Bar::AtMost(5.0, "%"),
    );
    Ok(())
}
