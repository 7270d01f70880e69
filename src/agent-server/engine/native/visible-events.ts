import type {
  ActionEvent,
  AgentErrorEvent,
  AgentEvent,
  Condensation,
  MessageEvent,
  ObservationEvent,
  SystemPromptEvent,
  UserRejectObservation,
} from '../../../agent-protocol/events.js';

/** What closes a tool call. */
export type ResultEvent = ObservationEvent | AgentErrorEvent | UserRejectObservation;

/** Events that a model is told about. */
export type VisibleEvent = SystemPromptEvent | MessageEvent | ActionEvent | ResultEvent | Condensation;

/**
 * The history as the model sees it: what was condensed is gone, and the condensation stands in its place, at its
 * offset among what remains. A condensation that a later one forgets is gone too.
 */
export function visibleEvents(events: readonly AgentEvent[]): VisibleEvent[] {
  const forgotten = new Set(
    events.flatMap((event) => (event.kind === 'Condensation' ? event.forgotten_event_ids : [])),
  );
  const remaining = withOnePrompt(events.filter(isVisible)).filter(({ id }) => !forgotten.has(id));
  const view: VisibleEvent[] = remaining.filter(({ kind }) => kind !== 'Condensation');
  for (const event of remaining) {
    if (event.kind === 'Condensation' && event.summary) {
      view.splice(event.summary_offset ?? 0, 0, event);
    }
  }
  return view;
}

/** The last system prompt, which counts, in the place of the first. */
function withOnePrompt(events: readonly VisibleEvent[]): VisibleEvent[] {
  const last = events.findLast(({ kind }) => kind === 'SystemPromptEvent');
  const first = events.findIndex(({ kind }) => kind === 'SystemPromptEvent');
  return events.flatMap((event, index) => {
    if (event.kind !== 'SystemPromptEvent') {
      return [event];
    }
    return index === first && last !== undefined ? [last] : [];
  });
}

export function isResult(event: AgentEvent): event is ResultEvent {
  return (
    event.kind === 'ObservationEvent' ||
    event.kind === 'AgentErrorEvent' ||
    event.kind === 'UserRejectObservation'
  );
}

function isVisible(event: AgentEvent): event is VisibleEvent {
  return (
    isResult(event) ||
    event.kind === 'SystemPromptEvent' ||
    event.kind === 'MessageEvent' ||
    event.kind === 'ActionEvent' ||
    event.kind === 'Condensation'
  );
}
