import { Tabs } from '@base-ui/react/tabs';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Ago, Button, Empty, Loaded } from '../ui/blocks.js';
import { changesQuery, type Conversation, diffQuery, fileQuery, filesQuery } from './conversation-queries.js';
import { DiffView } from './diff-view.js';

/** So many are shown unfolded. */
const FEW_CHANGES = 5;
const LETTERS: Record<string, string> = { ADDED: 'A', UPDATED: 'M', DELETED: 'D', MOVED: 'R' };
const PANELS = { Changes, Files };

/** What the agent has changed, and the files as they are now, both from the repository down. */
export function Workspace({ conversation: { id, sandbox_status: status } }: { conversation: Conversation }) {
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
          {status === 'RUNNING' || (Panel === Changes && status !== 'STARTING') ? (
            <Panel id={id} status={status} />
          ) : (
            <Empty title={`The sandbox is ${status.toLowerCase()}`}>
              {status === 'MISSING' ? 'Its files are gone.' : 'Its files can be seen while it runs.'}
            </Empty>
          )}
        </Tabs.Panel>
      ))}
    </Tabs.Root>
  );
}

/** Of a sandbox that does not run, as they were kept; null where nothing was. */
function Changes({ id, status: sandbox }: { id: string; status: string }) {
  return (
    <Loaded query={useQuery(changesQuery(id, sandbox))} name="changes" empty="No changes yet">
      {(list) =>
        list === null ? (
          <Empty title="No changes were kept">Resume the sandbox to see what the agent changed.</Empty>
        ) : (
          <>
            {list[0]?.as_of && (
              <p className="hint">
                The sandbox is not running. These changes are from <Ago time={list[0].as_of} />.
              </p>
            )}
            <ul className="files">
              {list.map(({ path, status }) => (
                <Change key={path} id={id} path={path} status={status} isFew={list.length <= FEW_CHANGES} />
              ))}
            </ul>
          </>
        )
      }
    </Loaded>
  );
}

type ChangeProps = { id: string; path: string; status: string; isFew: boolean };

function Change({ id, path, status, isFew }: ChangeProps) {
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

function Files({ id }: { id: string }) {
  const files = useQuery(filesQuery(id));
  const [opened, setOpened] = useState<string | null>(null);
  return opened === null ? (
    <Loaded query={files} name="files" empty="No files yet">
      {(list) => (
        <ul className="files">
          {list.map((path) => (
            <li key={path}>
              <button type="button" className="file" onClick={() => setOpened(path)}>
                {path}
              </button>
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  ) : (
    <File id={id} path={opened} onClose={() => setOpened(null)} />
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
