import type { Schemas } from '../api/client.js';
import { Section } from '../ui/blocks.js';
import { amountOf, CheckField, type Fields, Form, given, NumberField, SelectField } from '../ui/form.js';
import { AgentField, FORKS } from '../work/start.js';
import { type OfOwner, type StoredSettings, storeSettings } from './stored-settings.js';

const LEAD = 'How far your agents go before they ask or stop.';
const SHARED = 'How far agents go before they ask or stop, for users who have not chosen something else.';
const CONFIRM = { name: 'confirm', member: 'confirmation_mode' };
const STEPS = { label: 'Step limit', member: 'max_iterations', hint: 'For one run; empty for the default' };
const DOLLARS = 'In US dollars for one conversation; empty for no limit';
const BUDGET = { label: 'Budget', member: 'max_budget_per_task', hint: DOLLARS };
/** The same of oneself and of others. */
const WORDS = {
  user: { confirm: 'Ask me before each step', fork: 'Where I may not push', forks: FORKS },
  organization: {
    confirm: 'Ask before each step',
    fork: 'Where users may not push',
    forks: Object.entries({ auto: 'Work in a fork of theirs', never: 'Push nothing' }),
  },
};

export function Agent({ settings, owner = 'user' }: { settings: StoredSettings } & OfOwner) {
  const { confirmation_mode: asks, max_iterations: steps, max_budget_per_task: budget } = settings;
  const isShared = owner === 'organization';
  const words = WORDS[owner];
  const title = isShared ? 'Shared agent settings' : 'Agent';
  const save = (field: Fields) => {
    const limits = { max_iterations: amountOf(field, 'step limit'), max_budget_per_task: amountOf(field, 'budget') };
    const fork = field(words.fork.toLowerCase()) as Schemas['Settings']['fork'];
    const [asksFirst, isDefault] = [field('confirm') !== '', fork === 'auto'];
    // What is as by default is not shared: users would see it as a choice of the organization.
    const chosen = isShared
      ? { confirmation_mode: asksFirst || null, fork: isDefault ? null : fork }
      : { confirmation_mode: asksFirst, fork };
    return storeSettings({ ...chosen, ...limits, ...given({ agent: field('agent') }) }, owner);
  };
  return (
    <Section title={title} lead={isShared ? SHARED : LEAD}>
      <Form name={title} submit="Save" onSubmit={save}>
        <CheckField {...CONFIRM} label={words.confirm} defaultChecked={asks === true} />
        <div className="columns">
          <AgentField preselected={settings.agent} />
          <NumberField {...STEPS} min={1} defaultValue={steps ?? ''} />
          <NumberField {...BUDGET} min={0.01} step={0.01} defaultValue={budget ?? ''} />
          <SelectField label={words.fork} member="fork" options={words.forks} defaultValue={settings.fork ?? 'auto'} />
        </div>
      </Form>
    </Section>
  );
}
