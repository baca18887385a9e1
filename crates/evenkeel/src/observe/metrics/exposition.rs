//! Writes metrics: a family at a time, as every exposition format wants them.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;

use super::{Metric, MetricKind};
use crate::control::counts::histogram::Shown;

/// Where metrics are written to.
pub(super) struct Exposition<'a>(DescriptorEncoder<'a>);

/// A metric that is being written: its series come one after the other.
pub(super) struct Family<'a>(MetricEncoder<'a>);

/// The labels of a series.
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

/// The name of a flow control beside others, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowName<'a> {
    pub(super) label: &'static str,
    pub(super) value: &'a str,
}

/// The labels of a series that belongs to a flow control with a name, if there are several.
#[derive(Debug)]
struct NamedLabels<'a> {
    flow_control: Option<FlowName<'a>>,
    labels: Labels<'a>,
}

// === impl Exposition ===

impl<'a> Exposition<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// Begins a metric.
    pub(super) fn family(&mut self, metric: Metric) -> Result<Family<'_>, fmt::Error> {
        let kind = match metric.kind {
            MetricKind::Counter => MetricType::Counter,
            MetricKind::Gauge => MetricType::Gauge,
            MetricKind::Histogram => MetricType::Histogram,
        };
        self.0.encode_descriptor(metric.name, metric.help, None, kind).map(Family)
    }
}

// === impl Family ===

impl Family<'_> {
    /// A counter that has counted something; one that has not has no series yet (OB-7).
    pub(super) fn count(&mut self, flow_control: Option<FlowName<'_>>, labels: Labels<'_>, count: u64) -> fmt::Result {
        if count == 0 { Ok(()) } else { self.count_from_zero(flow_control, labels, count) }
    }

    /// A counter that is there before it counts, so that the first of what it counts is an increase.
    pub(super) fn count_from_zero(
        &mut self,
        flow_control: Option<FlowName<'_>>,
        labels: Labels<'_>,
        count: u64,
    ) -> fmt::Result {
        self.0.encode_family(&NamedLabels { flow_control, labels })?.encode_counter::<NoLabelSet, _, u64>(&count, None)
    }

    /// Writes a counter that is not a whole number.
    pub(super) fn float_count(
        &mut self,
        flow_control: Option<FlowName<'_>>,
        labels: Labels<'_>,
        count: f64,
    ) -> fmt::Result {
        if count <= 0.0 {
            return Ok(());
        }
        self.0.encode_family(&NamedLabels { flow_control, labels })?.encode_counter::<NoLabelSet, _, u64>(&count, None)
    }

    pub(super) fn gauge(&mut self, flow_control: Option<FlowName<'_>>, labels: Labels<'_>, value: i64) -> fmt::Result {
        self.0.encode_family(&NamedLabels { flow_control, labels })?.encode_gauge(&value)
    }

    pub(super) fn float_gauge(
        &mut self,
        flow_control: Option<FlowName<'_>>,
        labels: Labels<'_>,
        value: f64,
    ) -> fmt::Result {
        self.0.encode_family(&NamedLabels { flow_control, labels })?.encode_gauge(&value)
    }

    /// A gauge of the whole server.
    pub(super) fn lone_gauge(&mut self, value: f64) -> fmt::Result {
        self.0.encode_gauge(&value)
    }

    /// A counter of the whole process.
    pub(super) fn lone_counter(&mut self, value: f64) -> fmt::Result {
        self.0.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    /// A histogram, which may be empty.
    pub(super) fn histogram(
        &mut self,
        flow_control: Option<FlowName<'_>>,
        labels: Labels<'_>,
        shown: &Shown,
    ) -> fmt::Result {
        let labels = NamedLabels { flow_control, labels };
        let mut encoder = self.0.encode_family(&labels)?;
        encoder.encode_histogram::<NoLabelSet>(shown.sum, shown.count, &shown.buckets, None)
    }

    /// A histogram that has observed something; one that has not has no series yet (OB-7).
    pub(super) fn observed(
        &mut self,
        flow_control: Option<FlowName<'_>>,
        labels: Labels<'_>,
        shown: &Shown,
    ) -> fmt::Result {
        if shown.count == 0 { Ok(()) } else { self.histogram(flow_control, labels, shown) }
    }
}

// === impl NamedLabels ===

impl EncodeLabelSet for NamedLabels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let name = self.flow_control.map(|name| (name.label, name.value));
        name.iter().chain(self.labels).try_for_each(|label| EncodeLabel::encode(label, encoder.encode_label()))
    }
}
