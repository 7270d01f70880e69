import { useQuery } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import { api, at, bodyOf, PROVIDER_NAMES, type Provider, type Schemas } from '../api/client.js';
import { secretsQuery } from '../settings/secrets.js';
import { Callout, Section } from '../ui/blocks.js';
import { amountOf, CheckField, Checks, chosenOf, type Fields, Form, NumberField } from '../ui/form.js';
import { SelectField, TextArea, TextField, useFilter } from '../ui/form.js';
import { FOLLOW, FORKS, ModelAndAgent } from '../work/start.js';
import { type Kind, KINDS } from '../work/suggested-tasks.js';
import { type Automation, type AutomationRequest } from './automation-queries.js';
import {
  type Draft,
  pastEventsQuery,
  sourceName,
  SOURCES,
  sourcesQuery,
  subjectText,
  type Trigger,
  whenText,
} from './automation-queries.js';

type Work = Pick<AutomationRequest, 'prompt' | 'tasks' | 'repos'>;
type WhenBusy = NonNullable<AutomationRequest['concurrency']>['when_busy'];

const WORK = Object.entries({ prompt: 'A prompt', tasks: 'The most pressing suggested tasks' });
const WHAT = 'What an agent does each time: what you write, or what is most pressing on your git hosts.';
const HINT = '{{ event.issue.title }} is replaced by what the event says. Agents are told that strangers wrote it.';
const EXAMPLE = 'Solve this issue and open a pull request: {{ event.issue.html_url }}';
const PROMPT = { required: true, rows: 5, placeholder: EXAMPLE, hint: HINT };
const FORK = [['', 'As in the settings'] as const, ...FORKS];
const GIT = Object.entries({ write: 'Fetch and push', read: 'Fetch', none: 'No access after the clone' });
const SECRETS = Object.entries({ all: 'All stored secrets', some: 'Only these' });
const BUSY = Object.entries({
  queue: 'The next run waits',
  skip: 'The next run is skipped',
  replace: 'The next run replaces it',
});
const KIND_NAMES = Object.entries(KINDS);
const HOSTS = Object.entries({ '': 'The first with a token', ...PROVIDER_NAMES });

/** The limits are those that the service gives. */
const EMPTY: Draft = { preset_metadata: { max_budget_per_run: 5, max_budget_per_month: 50 } };

const NUMBER = { required: true, min: 1 };
const DOLLARS = { min: 0.01, step: 0.01 };
const MINUTES = { min: 1, max: 1_440, step: 'any' };

const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone')].map((zone) => <option key={zone} value={zone} />);
const STARTS = Object.entries({ cron: 'By a schedule', event: 'By an event' });
const FROM = Object.entries({ writers: 'People who may push to the repository', anyone: 'Anyone' });
const FROM_HINT = 'With Anyone, limit the secrets and do not allow pushing';
const EVENTS_HINT = 'Separated by commas; pull_request.* stands for all events of pull requests';
const FILTER_HINT = 'Optional: a JMESPath expression that must be true for the event';

type EditorProps = {
  /** The automation to edit; null creates one. */
  automation: Automation | null;
  /** What a new one begins with. */
  draft?: Draft;
};

export function Editor({ automation, draft = EMPTY }: EditorProps) {
  const [, navigate] = useLocation();
  const shown = automation ?? draft;
  const { tasks, repos, secret_names: names, ...more } = shown.preset_metadata;
  const choices = { work: tasks ? 'tasks' : 'prompt', secrets: names ? 'some' : 'all' };
  const [given, bind] = useFilter({ ...toFields(shown.trigger), ...choices });
  const stored = (useQuery(secretsQuery).data ?? []).map(({ name }) => name);
  const secrets = [...new Set([...stored, ...(names ?? [])])].map((name) => [name, name] as const);
  const minutes = shown.timeout ? shown.timeout / 60 : '';
  const [repo] = repos ?? [];
  const save = async (field: Fields) => {
    const follow = field('follow') === '' ? null : (more.follow ?? {});
    const body = { ...requestOf(field), follow, trigger: toTrigger(given) };
    if (automation !== null) {
      await bodyOf(api.PATCH('/api/automation/v1/{id}', { ...at(automation.id), body }));
      return 'Saved.';
    }
    navigate(`/automations/${(await bodyOf(api.POST('/api/automation/v1/preset/prompt', { body }))).id}`);
  };
  return (
    <Form name="Automation" submit="Save" onSubmit={save} keeps>
      <Section title="What" lead={WHAT}>
        <TextField label="Name" required defaultValue={shown.name} placeholder="Morning triage" />
        <SelectField label="Work" options={WORK} {...bind('work')} />
        {given.work === 'prompt' ? (
          <TextArea label="Prompt" {...PROMPT} defaultValue={shown.prompt ?? ''} />
        ) : (
          <>
            <Checks legend="Kinds" options={KIND_NAMES} chosen={tasks?.task_types} />
            <Checks legend="Hosts" options={HOSTS.slice(1)} chosen={tasks?.providers} />
            <p className="hint">If nothing is ticked, all of them.</p>
            <NumberField label="Tasks at a time" {...NUMBER} max={10} defaultValue={tasks?.limit ?? 1} />
          </>
        )}
      </Section>
      {given.work === 'prompt' && (
        <Section title="Where" lead="The repository that the agent begins with. Without one, its folder is empty.">
          <div className="columns">
            <TextField label="Repository" defaultValue={repo?.url} placeholder="owner/name" />
            <SelectField label="Host" options={HOSTS} defaultValue={repo?.provider ?? ''} />
            <TextField label="Branch" defaultValue={repo?.ref ?? ''} hint="A new one by default" />
          </div>
        </Section>
      )}
      <Section title="When" lead="What starts it. Run now starts it by hand at any time.">
        <TriggerFields given={given} bind={bind} />
      </Section>
      <Section title="Model and access" lead="The model, the agent, and the secrets that its tools get.">
        <div className="columns">
          <ModelAndAgent model={shown.model} agent={more.agent} />
          <SelectField label="Secrets" options={SECRETS} {...bind('secrets')} />
          <SelectField label="Git" options={GIT} defaultValue={more.git} />
          <SelectField label="Where I may not push" options={FORK} defaultValue={more.fork ?? ''} />
        </div>
        {given.secrets === 'some' && <Checks legend="Which secrets" options={secrets} chosen={names} />}
        <CheckField {...FOLLOW} defaultChecked={Boolean(more.follow)} />
      </Section>
      <Section title="Limits" lead="When it waits or stops. Without a budget or a time there is no limit.">
        <div className="columns">
          <NumberField label="Runs at a time" {...NUMBER} max={20} defaultValue={more.concurrency?.limit ?? 1} />
          <SelectField label="While it is busy" options={BUSY} defaultValue={more.concurrency?.when_busy} />
          <NumberField label="Runs per day" {...NUMBER} max={1_000} defaultValue={more.max_runs_per_day ?? 100} />
          <NumberField label="Budget per run (USD)" {...DOLLARS} defaultValue={more.max_budget_per_run ?? ''} />
          <NumberField label="Budget per month (USD)" {...DOLLARS} defaultValue={more.max_budget_per_month ?? ''} />
          <NumberField label="Time limit per run (minutes)" {...MINUTES} defaultValue={minutes} />
        </div>
      </Section>
    </Form>
  );
}

function requestOf(field: Fields): Omit<AutomationRequest, 'trigger'> {
  const minutes = amountOf(field, 'time limit per run (minutes)');
  return {
    name: field('name'),
    ...(field('work') === 'prompt' ? promptOf(field) : tasksOf(field)),
    model: field('model') || null,
    agent: field('agent') || null,
    git: field('git') as AutomationRequest['git'],
    fork: (field('where i may not push') || null) as AutomationRequest['fork'],
    secret_names: field('secrets') === 'all' ? null : chosenOf(field, 'Which secrets'),
    concurrency: { limit: Number(field('runs at a time')), when_busy: field('while it is busy') as WhenBusy },
    max_runs_per_day: Number(field('runs per day')),
    max_budget_per_run: amountOf(field, 'budget per run (usd)'),
    max_budget_per_month: amountOf(field, 'budget per month (usd)'),
    timeout: minutes && Math.round(minutes * 60),
  };
}

function promptOf(field: Fields): Work {
  const provider = (field('host') || null) as Provider | null;
  const repo = { url: field('repository'), ref: field('branch') || null, provider };
  return { prompt: field('prompt'), repos: repo.url === '' ? [] : [repo] };
}

function tasksOf(field: Fields): Work {
  const chosen = (legend: string) => (field(legend.toLowerCase()) === '' ? null : chosenOf(field, legend));
  const [kinds, providers] = [chosen('Kinds') as Kind[] | null, chosen('Hosts') as Provider[] | null];
  return { tasks: { task_types: kinds, providers, limit: Number(field('tasks at a time')) }, repos: [] };
}

/** What the fields hold. */
type Given = Record<'type' | 'schedule' | 'timezone' | 'source' | 'on' | 'filter' | 'from', string>;

function toFields(trigger: Trigger | undefined): Given {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const { on = '', filter, ...rest } = trigger ?? { type: 'cron' };
  const usual = { schedule: '0 9 * * 1-5', timezone: timeZone, source: 'github', from: 'writers' };
  return { ...usual, ...rest, on: [on].flat().join(', '), filter: filter ?? '', from: rest.from ?? usual.from };
}

function toTrigger({ type, schedule, timezone, source, on, filter, from }: Given): Trigger {
  const event = { source, on: on.split(/[\s,]+/).filter(Boolean), filter: filter || null };
  return type === 'cron' ? { type, schedule, timezone } : { type: 'event', ...event, from: from as Trigger['from'] };
}

type TriggerProps = { given: Given; bind: ReturnType<typeof useFilter<Given>>[1] };

function TriggerFields({ given, bind }: TriggerProps) {
  return (
    <>
      <SelectField label="Starts" options={STARTS} {...bind('type')} />
      {given.type === 'cron' ? (
        <div className="columns">
          <TextField label="Schedule" required hint="Cron: minute, hour, day, month, weekday" {...bind('schedule')} />
          <TextField label="Time zone" required list="zones" hint="Such as Europe/Berlin" {...bind('timezone')} />
          <datalist id="zones">{ZONES}</datalist>
        </div>
      ) : (
        <EventFields given={given} bind={bind} />
      )}
      <Outlook given={given} />
    </>
  );
}

function EventFields({ given: { source }, bind }: TriggerProps) {
  const webhooks = useQuery(sourcesQuery).data ?? [];
  const own = [...webhooks.map((webhook) => webhook.source), source].map((name) => [name, sourceName(name)] as const);
  return (
    <>
      <SelectField label="Source" options={new Map([...Object.entries(SOURCES), ...own])} {...bind('source')} />
      {!webhooks.some((webhook) => webhook.source === source) && (
        <Callout kind="warning" title={`No webhook takes events of ${sourceName(source)} yet`}>
          <Link href="/automations#sources-of-events">Create one, and enter it at the host</Link>
        </Callout>
      )}
      <TextField label="Events" required placeholder="issues.labeled" hint={EVENTS_HINT} {...bind('on')} />
      <TextField label="Filter" placeholder="label.name == 'agent'" hint={FILTER_HINT} {...bind('filter')} />
      <SelectField label="Caused by" options={FROM} hint={FROM_HINT} {...bind('from')} />
    </>
  );
}

/** When it will start, or whether an event would have started it; asked while the fields are filled in. */
function Outlook({ given }: { given: Given }) {
  const trigger = toTrigger(given);
  const isEvent = given.type === 'event';
  const [{ event }, bind] = useFilter({ event: '' });
  const past = useQuery({ ...pastEventsQuery(given.source), enabled: isEvent }).data ?? [];
  const chosen = past.find(({ id }) => id === event);
  const { data: outlook } = useQuery({
    queryKey: ['trigger', trigger, chosen?.id],
    queryFn: async () => {
      const body = { trigger: { ...trigger }, ...(chosen && { event_id: chosen.id }) };
      return outlookOf(await bodyOf(api.POST('/api/automation/v1/validate', { body })), trigger, chosen !== undefined);
    },
    enabled: (isEvent ? given.on : given.schedule).trim() !== '',
    placeholderData: (before) => before,
  });
  const options = past.map(
    ({ id, subject, created_at: time }) => [id, `${subjectText(subject)}, ${whenText(time)}`] as const,
  );
  return (
    <>
      {isEvent && past.length > 0 && (
        <SelectField label="Try with a past event" options={[['', 'The last one'], ...options]} {...bind('event')} />
      )}
      <div role="status" className={`outlook ${outlook?.tone}`}>
        {outlook?.words.map((text) => (
          <p key={text}>{text}</p>
        ))}
      </div>
    </>
  );
}

type Report = Schemas['ValidateDraftResponse'];

function outlookOf(
  { valid, errors, next_times: times, matched, reasons }: Report,
  { type, timezone, source }: Trigger,
  isChosen: boolean,
) {
  if (!valid) {
    return { tone: 'bad', words: errors.map(({ message }) => message) };
  }
  const host = sourceName(source ?? '');
  const last =
    matched === null
      ? `No event of ${host} arrived within the last day, so there is nothing to compare with.`
      : `${isChosen ? 'This' : 'The last'} event of ${host} would ${matched ? '' : 'not '}have started it.`;
  const next = ['The next times:', ...times.map((time) => whenText(time, timezone))];
  return { tone: '', words: type === 'cron' ? next : [last, ...reasons] };
}
