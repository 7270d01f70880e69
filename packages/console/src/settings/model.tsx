import { Confirmed } from '../ui/actions.js';
import { Section } from '../ui/blocks.js';
import { type Fields, Form, given, TextField } from '../ui/form.js';
import { ModelTest } from './model-test.js';
import { type OfOwner, type StoredSettings, storeSettings } from './stored-settings.js';

const LEAD =
  'The model that your agents use, over an API like that of OpenAI or Anthropic. It is tested when you save it.';
const SHARED =
  'The model of users who have set none. Its key goes to the address here, and is never shown. It is tested when you save it.';
const MODEL = {
  label: 'Model',
  member: 'llm_model',
  placeholder: 'anthropic/claude-sonnet-4-5',
  hint: 'With its provider: openai/gpt-5, anthropic/…, or openai/<name> for your own server',
};
const OWN = 'Only for your own server';
const ADDRESS = { label: 'Address', member: 'llm_base_url', placeholder: 'https://models.example.com/v1', hint: OWN };

/** The field itself says where the key is the organization's. */
function keyHint({ llm_source: source, from_organization: shared, llm_api_key_set: isSet }: StoredSettings) {
  if (source === 'operator') {
    return 'Provided by your operator. A key of your own takes its place.';
  }
  const hint = isSet ? 'A key is stored. Leave this empty to keep it.' : 'No key is stored.';
  return shared?.includes('llm_api_key') ? undefined : hint;
}

const UNSHARED = 'Its key is deleted. Users who have set no model of their own have that of your operator, or none.';
const NONE = { llm_model: '', llm_base_url: '', llm_api_key: '' };

export function Model({ settings, owner = 'user' }: { settings: StoredSettings } & OfOwner) {
  const isShared = owner === 'organization';
  const save = (field: Fields) =>
    storeSettings(
      { llm_model: field('model'), llm_base_url: field('address'), ...given({ llm_api_key: field('key') }) },
      owner,
    );
  const unshare = isShared && settings.llm_source === 'organization' && (
    <Confirmed name="Stop sharing" of="the model" text={UNSHARED} act={() => storeSettings(NONE, owner)} />
  );
  return (
    <Section title={isShared ? 'Shared model' : 'Model'} lead={isShared ? SHARED : LEAD}>
      <Form name={isShared ? 'Shared model' : 'Thinking'} submit="Save" onSubmit={save} actions={unshare}>
        <TextField {...MODEL} required defaultValue={settings.llm_model ?? ''} />
        <TextField {...ADDRESS} type="url" defaultValue={settings.llm_base_url ?? ''} />
        <TextField label="Key" member="llm_api_key" type="password" hint={keyHint(settings)} />
      </Form>
      {!isShared && settings.llm_model && <ModelTest model={settings.llm_model} />}
    </Section>
  );
}
