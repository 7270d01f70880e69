import { useQuery } from '@tanstack/react-query';
import { api, bodyOf, meQuery, type Schemas, session } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Contents, Folds, Loaded, Section } from '../ui/blocks.js';
import { amountOf, CheckField, type Fields, Form, given, NumberField, SelectField, TextField } from '../ui/form.js';
import { AgentField, FORKS } from '../work/start.js';
import { GitHosts } from './git-hosts.js';
import { Keys } from './keys.js';
import { ModelTest } from './model-test.js';
import { Notifications } from './notifications.js';
import { Secrets } from './secrets.js';
import { SignIns } from './sign-ins.js';
import { ToolServers } from './tool-servers.js';
import { Webhooks } from './webhooks.js';

const TITLES = ['Git hosts', 'Model', 'Agent', 'Secrets', 'Tool servers', 'Webhooks', 'Notifications', 'Keys'];

/** What a user connects: all of it on one page, in the order in which a newcomer needs it. */
export function SettingsPage() {
  const me = useQuery(meQuery);
  return (
    <Page title="Settings">
      <Contents titles={session.signInUrl === null ? TITLES : [...TITLES, 'Company account']} />
      <Loaded query={me} name="settings">
        {(settings) => (
          <Folds value>
            <GitHosts />
            <Model settings={settings} />
            <Agent settings={settings} />
            <Secrets />
            <ToolServers settings={settings} />
            <Webhooks />
            <Notifications />
            <Keys />
            <SignIns />
          </Folds>
        )}
      </Loaded>
    </Page>
  );
}

const LEAD =
  'The model that your agents use, over an API like that of OpenAI or Anthropic. It is tested when you save it.';

const MODEL = {
  label: 'Model',
  member: 'llm_model',
  placeholder: 'anthropic/claude-sonnet-4-5',
  hint: 'With its provider: openai/gpt-5, anthropic/…, or openai/<name> for your own server',
};
const OWN = 'Only for your own server';
const ADDRESS = { label: 'Address', member: 'llm_base_url', placeholder: 'https://models.example.com/v1', hint: OWN };

async function store(body: Schemas['Settings']) {
  const { warnings = [] } = await bodyOf(api.POST('/api/v1/settings', { body }));
  return warnings.length === 0 ? 'Saved.' : { warning: warnings.map(({ detail }) => detail).join(' ') };
}

function saveModel(field: Fields) {
  return store({ llm_model: field('model'), llm_base_url: field('address'), ...given({ llm_api_key: field('key') }) });
}

function keyHint({ llm_source: source, llm_api_key_set: isSet }: Schemas['UserInfo']): string {
  if (source === 'operator' || source === 'organization') {
    return `Provided by your ${source}. A key of your own takes its place.`;
  }
  return isSet ? 'A key is stored. Leave this empty to keep it.' : 'No key is stored.';
}

function Model({ settings }: { settings: Schemas['UserInfo'] }) {
  return (
    <Section title="Model" lead={LEAD}>
      <Form name="Thinking" submit="Save" onSubmit={saveModel}>
        <TextField {...MODEL} required defaultValue={settings.llm_model ?? ''} />
        <TextField {...ADDRESS} type="url" defaultValue={settings.llm_base_url ?? ''} />
        <TextField label="Key" member="llm_api_key" type="password" hint={keyHint(settings)} />
      </Form>
      {settings.llm_model && <ModelTest model={settings.llm_model} />}
    </Section>
  );
}

const STEPS = { label: 'Step limit', member: 'max_iterations', hint: 'For one run; empty for the default' };
const DOLLARS = 'In US dollars for one conversation; empty for no limit';
const BUDGET = { label: 'Budget', member: 'max_budget_per_task', hint: DOLLARS };
const FORK = { label: 'Where I may not push', member: 'fork' };

function saveAgent(field: Fields) {
  const limits = { max_iterations: amountOf(field, 'most steps'), max_budget_per_task: amountOf(field, 'budget') };
  return store({
    confirmation_mode: field('confirm') !== '',
    ...limits,
    ...given({ agent: field('agent') }),
    fork: field('where i may not push') as Schemas['Settings']['fork'],
  });
}

function Agent({ settings }: { settings: Schemas['UserInfo'] }) {
  const { confirmation_mode: asks, max_iterations: steps, max_budget_per_task: budget } = settings;
  return (
    <Section title="Agent" lead="How far your agents go before they ask or stop.">
      <Form name="Agent" submit="Save" onSubmit={saveAgent}>
        <CheckField label="Ask me before each step" name="confirm" defaultChecked={asks === true} />
        <div className="columns">
          <AgentField preselected={settings.agent} />
          <NumberField {...STEPS} min={1} defaultValue={steps ?? ''} />
          <NumberField {...BUDGET} min={0.01} step={0.01} defaultValue={budget ?? ''} />
          <SelectField {...FORK} options={FORKS} defaultValue={settings.fork ?? 'auto'} />
        </div>
      </Form>
    </Section>
  );
}
