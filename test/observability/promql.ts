import { parser } from '@prometheus-io/lezer-promql';

/** What a query asks of one metric. */
export interface Selection {
  metric: string;
  matchers: { label: string; operator: string; value: string }[];
}

/** What a query needs of the metrics that there are. */
export interface Query {
  selections: Selection[];
  /** Labels that results are grouped by, or matched on. */
  grouping: string[];
}

/** Grafana's variables, which are not PromQL. */
const VARIABLES: readonly [RegExp, string][] = [
  [/\$__rate_interval|\$__interval/g, '5m'],
  [/\$job/g, 'slipway'],
];

/**
 * Parses a query with the grammar of Prometheus itself.
 *
 * @throws Error for one that is not PromQL
 */
export function parseQuery(text: string): Query {
  const expression = VARIABLES.reduce((found, [variable, value]) => found.replaceAll(variable, value), text);
  const query: Query = { selections: [], grouping: [] };
  let group = false;
  parser.parse(expression).iterate({
    enter: ({ name, from, to, type }) => {
      const source = expression.slice(from, to);
      if (type.isError) {
        throw new Error(`not PromQL at ${from}: ${text}`);
      }
      const selection = query.selections.at(-1);
      switch (name) {
        case 'VectorSelector':
          query.selections.push({ metric: '', matchers: [] });
          break;
        case 'Identifier':
          if (selection !== undefined && selection.metric === '') {
            selection.metric = source;
          }
          break;
        case 'UnquotedLabelMatcher': {
          const [, label = '', operator = '', value = ''] =
            /^(\w+)\s*(=~|!~|!=|=)\s*"(.*)"$/s.exec(source) ?? [];
          selection?.matchers.push({ label, operator, value });
          break;
        }
        case 'GroupingLabels':
          group = true;
          break;
        case 'LabelName':
          if (group) {
            query.grouping.push(source);
          }
          break;
        default:
          break;
      }
    },
    leave: ({ name }) => {
      group = group && name !== 'GroupingLabels';
    },
  });
  return query;
}

/** The labels of a query's result, where it aggregates by labels; those of its metrics otherwise. */
export interface ExportedMetric {
  /** Values by label. */
  labels: Map<string, Set<string>>;
}

/** Reads Prometheus' text format: the series by name, with all values of their labels. */
export function parseExposition(text: string): Map<string, ExportedMetric> {
  const metrics = new Map<string, ExportedMetric>();
  for (const line of text.split('\n')) {
    const [, name, labels = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (name === undefined) {
      continue;
    }
    const metric = metrics.get(name) ?? { labels: new Map<string, Set<string>>() };
    metrics.set(name, metric);
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      metric.labels.set(label, (metric.labels.get(label) ?? new Set()).add(value));
    }
  }
  return metrics;
}
