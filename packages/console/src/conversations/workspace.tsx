import { Tabs } from '@base-ui/react/tabs';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Ago, Button, Empty, Loaded } from '../ui/blocks.js';
import { changesQuery, type Conversation, diffQuery, fileQuery, filesQuery } from './conversation-queries.js';
import { DiffView } from './diff-view.js';
import { Network } from './network.js';

/** The most changes that are shown unfolded. */
const FEW_CHANGES = 5;
const LETTERS: Record<string, string> = { ADDED: 'A', UPDATED: 'M', DELETED: 'D', MOVED: 'R' };
const PANELS = { Changes, Files, Network };
type PanelProps = { id: string; status: string; sandbox: string };

/** What the agent has changed, and the files as they are now, both from the repository down; what it asked the network for. */
export function Workspace({ conversation }: { conversation: Conversation }) {
  const { id, sandbox_status: status, sandbox_id: sandbox } = conversation;
  return (
    <Tabs.Root defaultValue="Changes" className="panel tabs">
      <Tabs.List className="tab-list" aria-label="Workspace">
        {Object.keys(PANELS).map((name) => (
          <Tabs.Tab key={name} value={name} className="tab">
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {Object.entries(PANELS).map(([name, Panel]) => (
        <Tabs.Panel key={name} value={name} className="tab-panel">
          {status === 'STARTING' && Panel !== Network ? (
            <Empty title="The sandbox is starting">Its files can be seen when it runs.</Empty>
          ) : (
            <Panel id={id} status={status} sandbox={sandbox} />
          )}
        </Tabs.Panel>
      ))}
    </Tabs.Root>
  );
}

/** A sandbox that does not run shows the changes that were kept. */
function Changes({ id, status }: PanelProps) {
  return (
    <Loaded query={useQuery(changesQuery(id, status))} name="changes" empty="No changes yet">
      {(list) =>
        list === null ? (
          <Empty title="No changes were kept">Resume the sandbox to see what the agent changed.</Empty>
        ) : (
          <>
            <AsOf what="changes" time={list[0]?.as_of} />
            <ul className="files">
              {list.map(({ path, status: how }) => (
                <Change key={path} id={id} path={path} status={how} isFew={list.length <= FEW_CHANGES} />
              ))}
            </ul>
          </>
        )
      }
    </Loaded>
  );
}

function Change({ id, path, status, isFew }: { id: string; path: string; status: string; isFew: boolean }) {
  const [isOpen, setOpen] = useState(isFew);
  const diff = useQuery({ ...diffQuery(id, path), enabled: isOpen });
  return (
    <li>
      <button type="button" className="file" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span className={`letter ${status}`} title={status.toLowerCase()}>
          {LETTERS[status]}
        </span>
        {path}
      </button>
      {isOpen && (
        <Loaded query={diff} name={`the changes of ${path}`}>
          {({ original, modified }) => <DiffView path={path} before={original} after={modified} />}
        </Loaded>
      )}
    </li>
  );
}

/** A sandbox that does not run shows the file names that were kept. */
function Files({ id, status }: PanelProps) {
  const files = useQuery(filesQuery(id, status));
  const [opened, setOpened] = useState<string | null>(null);
  if (opened !== null && status === 'RUNNING') {
    return <File id={id} path={opened} onClose={() => setOpened(null)} />;
  }
  return (
    <Loaded query={files} name="files">
      {(found) =>
        found === null ? (
          <Empty title="No list of the files was kept">
            {status === 'MISSING' ? 'The files are gone.' : 'Resume the sandbox to see them.'}
          </Empty>
        ) : found.paths.length === 0 ? (
          <Empty title="No files yet" />
        ) : (
          <>
            <AsOf what="names" time={found.asOf} />
            <ul className="files">
              {found.paths.map((path) => (
                <li key={path}>
                  {found.asOf === null ? (
                    <button type="button" className="file" onClick={() => setOpened(path)}>
                      {path}
                    </button>
                  ) : (
                    <span className="file">{path}</span>
                  )}
                </li>
              ))}
            </ul>
          </>
        )
      }
    </Loaded>
  );
}

function AsOf({ what, time }: { what: string; time: string | null | undefined }) {
  return (
    time && (
      <p className="hint">
        The sandbox is not running. These {what} are from <Ago time={time} />.
      </p>
    )
  );
}

function File({ id, path, onClose }: { id: string; path: string; onClose: () => void }) {
  return (
    <>
      <div className="actions">
        <Button look="link" onClick={onClose} text="← All files" />
        <code>{path}</code>
      </div>
      <Loaded query={useQuery(fileQuery(id, path))} name={path}>
        {(text) =>
          text === null ? (
            <p className="hint">This file is not text.</p>
          ) : (
            <pre className="content" tabIndex={0}>
              {text}
            </pre>
          )
        }
      </Loaded>
    </>
  );
}
