//! Levels and matches in the settings (SF-1): the objects that they stand for, and their problems.

use evenkeel::cost::CostUnit;
use evenkeel_api::Preset;
use evenkeel_api::short::ShortForm;
use evenkeel_engine::controller::Objects;

use super::{Config, Problem, RouteConfig};

// === impl Config ===

impl Config {
    /// The levels and matches of the settings; `None` if there are none.
    pub fn short_form(&self) -> Option<ShortForm> {
        let form = ShortForm::new(self.levels.clone(), self.matches.clone());
        Some(form).filter(|form| !form.is_empty())
    }

    /// The objects that its levels and matches stand for; `None` if there are none, or if something is wrong with them.
    pub fn short_objects(&self) -> Option<Objects> {
        let objects = self.short_form()?.to_objects().ok()?;
        Some(objects.to_objects().collect())
    }

    /// Everything that is wrong with its levels and matches, by themselves and beside other settings.
    pub fn check_short_form(&self) -> Vec<Problem> {
        let Some(form) = self.short_form() else { return Vec::new() };
        let mut problems: Vec<Problem> = Vec::new();
        let mut add = |field: String, message: String| problems.push(Problem::new(field, message));
        for problem in form.problems() {
            add(problem.field, problem.message);
        }
        let first = if self.levels.is_empty() { "match" } else { "levels" };
        if self.objects.is_some() {
            let message = "the settings have `levels` and `match`, which stand for objects; keep one of them";
            add("objects".to_owned(), message.to_owned());
        }
        if self.preset == Preset::Kubernetes {
            let message =
                "`levels` and `match` are for ordinary services; for a Kubernetes API, write objects (`objects`)";
            add(first.to_owned(), message.to_owned());
        }
        for (index, route) in self.requests.routes.iter().enumerate() {
            // Requests of language models are known by their model, which matches know.
            if names_resource(route) && route.cost != Some(CostUnit::Tokens) {
                let message = "requests of this route are known by their resource, while `match` knows methods and paths; remove \
                               `resource`, or write objects (`objects`) instead of `levels` and `match`";
                add(format!("requests.routes[{index}]"), message.to_owned());
            }
        }
        let by_model =
            self.requests.routes.iter().filter(|route| names_resource(route) && route.cost == Some(CostUnit::Tokens));
        for route in by_model {
            let path = &route.path;
            for (index, _) in self.matches.iter().enumerate().filter(|(_, rule)| rule.names_path(path)) {
                let message = format!(
                    "requests for {path} are known by their model, so this match does not see them; write `model`, or no path"
                );
                problems.push(Problem::new(format!("match[{index}].path"), message));
            }
        }
        problems
    }
}

fn names_resource(route: &RouteConfig) -> bool {
    route.resource.is_some() || route.path.contains("{resource}")
}
