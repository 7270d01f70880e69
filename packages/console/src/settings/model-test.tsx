import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, bodyOf } from '../api/client.js';
import { ActionButton, tell } from '../ui/actions.js';
import { Badge, Button, Table } from '../ui/blocks.js';

const checkQuery = queryOptions({
  queryKey: ['model-check'],
  queryFn: async () => {
    const { checks } = await bodyOf(api.POST('/api/v1/model-check', { body: {} }));
    return checks.map((check) => ({ ...check, id: check.name }));
  },
  enabled: false,
});

/** Asks the stored model what it can do, and sets what suits it. */
export function ModelTest({ model }: { model: string }) {
  const check = useQuery(checkQuery);
  const llm: Record<string, unknown> = Object.assign({}, ...(check.data ?? []).map(({ setting }) => setting ?? {}));
  const apply = async () => {
    await bodyOf(api.POST('/api/v1/settings', { body: { agent_settings_diff: { llm } } }));
    tell('Set', `New conversations work with ${named(llm)}.`);
  };
  return (
    <>
      <Button isBusy={check.isFetching} onClick={() => void check.refetch()} text="Test this model" />
      {check.isFetched && (
        <Table query={check} name={`what ${model} can do`} columns={['Ability', 'Result', 'Why']}>
          {({ name, result, detail }) => [name.replaceAll('_', ' '), <Badge state={result} />, detail]}
        </Table>
      )}
      {Object.keys(llm).length > 0 && <ActionButton act={apply} text={`Set ${named(llm)}`} />}
    </>
  );
}

/** "native tool calling: off" */
function named(llm: Record<string, unknown>): string {
  const words: Record<string, string> = { true: 'on', false: 'off' };
  return Object.entries(llm)
    .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${words[String(value)] ?? String(value)}`)
    .join(', ');
}
