import { useQuery } from '@tanstack/react-query';
import { api, bodyOf } from '../api/client.js';
import { Badge, Button, Loaded, Section, Table } from '../ui/blocks.js';
import { Ago } from '../ui/moments.js';
import { useAction } from '../ui/use-action.js';
import { usersQuery } from './users.js';

const KEY = ['all-sandboxes'];
const REFRESH_MS = 10_000;
const MOST = 100;

export function Sandboxes() {
  const users = useQuery(usersQuery);
  const sandboxes = useQuery({
    queryKey: KEY,
    queryFn: async () => {
      const params = { query: { all: true, limit: MOST } };
      return (await bodyOf(api.GET('/api/v1/sandboxes/search', { params }))).items;
    },
    refetchInterval: REFRESH_MS,
  });
  const stop = useAction(
    (id: string) => bodyOf(api.POST('/api/v1/sandboxes/{id}/pause', { params: { path: { id } } })),
    KEY,
  );
  const ownerOf = (id: string) => users.data?.find((user) => user.id === id)?.email ?? id;
  return (
    <Section
      title="Sandboxes"
      lead={`The newest ${MOST} of all users. What is stopped keeps its files, and its owner can resume it.`}>
      <Loaded query={sandboxes} name="sandboxes" empty="No sandbox is there.">
        {(list) => (
          <Table
            name="Sandboxes of all"
            columns={['Sandbox', 'Owner', 'State', 'Made', '']}
            rows={list.map(({ id, created_by_user_id: owner, status, created_at: made }) => ({
              key: id,
              cells: [
                <code>{id}</code>,
                ownerOf(owner),
                <Badge state={status} />,
                <Ago time={made} />,
                <Button
                  disabled={status !== 'RUNNING' && status !== 'STARTING'}
                  isBusy={stop.isPending && stop.variables === id}
                  title={`Stop ${id}`}
                  onClick={() => stop.mutate(id)}>
                  Stop
                </Button>,
              ],
            }))}
          />
        )}
      </Loaded>
    </Section>
  );
}
