import { api, bodyOf, type Schemas } from '../api/client.js';
import { meQuery } from '../api/me.js';
import { type Fields, Form, given, TextField } from '../ui/form.js';
import { Section } from '../ui/blocks.js';

const LEAD =
  'What agents think with: any model behind an API of OpenAI or Anthropic. It is asked once when it is stored.';

async function save(field: Fields) {
  const body = { llm_model: field('model'), llm_base_url: field('address'), ...given({ llm_api_key: field('key') }) };
  const { warnings = [] } = await bodyOf(api.POST('/api/v1/settings', { body }));
  return warnings.length === 0 ? 'Saved.' : { warning: warnings.map(({ detail }) => detail).join(' ') };
}

export function Model({ settings }: { settings: Schemas['UserInfo'] }) {
  return (
    <Section title="Model" lead={LEAD}>
      <Form name="Thinking" submit="Save" onSubmit={save} old={[meQuery.queryKey]}>
        <TextField
          label="Model"
          name="model"
          required
          defaultValue={settings.llm_model ?? ''}
          placeholder="anthropic/claude-sonnet-4-5"
          hint="With its provider: openai/gpt-5, anthropic/…, or openai/<name> for a server of your own"
        />
        <TextField
          label="Address"
          type="url"
          defaultValue={settings.llm_base_url ?? ''}
          placeholder="https://models.example.com/v1"
          hint="Only for a server of your own"
        />
        <TextField
          label="Key"
          type="password"
          hint={settings.llm_api_key_set ? 'One is stored; leave this empty to keep it.' : 'None is stored.'}
        />
      </Form>
    </Section>
  );
}
