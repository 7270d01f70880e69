import { jsonText } from '../../common/json-access.js';
import type { StartRequest } from './start/start-request.js';

/** What is done anyway, so that asking for it is no surprise. */
const TITLE_PROCESSOR = 'SetTitleCallbackProcessor';

/** What of a request has no effect, or another one than somebody might expect; a sentence each. */
export function startNotes(request: StartRequest): string[] {
  const processors = asList(request['processors'])
    .map((processor) => jsonText(processor, 'kind') ?? '')
    .filter((kind) => kind !== TITLE_PROCESSOR);
  const traced = ['observability_metadata', 'observability_tags', 'observability_span_name'].filter(
    (name) => !isEmpty(request[name]),
  );
  const notes = [
    !isEmpty(request['agent_profile_id']) &&
      'agent_profile_id has no effect: there are no agent profiles here.',
    !isEmpty(request['plugins']) && 'plugins has no effect: plugins are not loaded here.',
    processors.length > 0 && `processors has no effect for ${processors.join(', ')}.`,
    traced.length > 0 && `${traced.join(', ')}: no effect, conversations are not traced here.`,
    request.agent_type === 'plan' &&
      'agent_type plan: the usual agent, told to write a plan into PLAN.md and to change nothing else.',
    request.public === true && 'public is kept and shown, but nobody else can see the conversation.',
  ];
  return notes.filter((note) => note !== false);
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function isEmpty(value: unknown): boolean {
  return (
    value === null ||
    value === undefined ||
    value === '' ||
    (typeof value === 'object' && Object.keys(value).length === 0)
  );
}
