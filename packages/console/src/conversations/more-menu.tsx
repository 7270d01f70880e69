import { Menu } from '@base-ui/react/menu';
import { useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { api, at, bodyOf } from '../api/client.js';
import { PATH_PREFIX } from '../api/path-prefix.js';
import { CAN_COPY, Modal, tell, useAction } from '../ui/actions.js';
import { Button } from '../ui/blocks.js';
import { type Fields, Form, TextField } from '../ui/form.js';
import type { Conversation } from './conversation-queries.js';
import type { Draft } from './new-conversation.js';

const DELETED = 'Its events are deleted, and its sandbox with all files unless another conversation uses it.';

async function copyLink(): Promise<void> {
  await navigator.clipboard.writeText(location.href);
  tell('The link is copied', 'It opens this conversation for you, and for others once it is shared.');
}

type MoreMenuProps = { conversation: Conversation; /** What it began with. */ message: string };

/** What is done with a conversation as a whole. */
export function MoreMenu({ conversation, message }: MoreMenuProps) {
  const { id, title, branch, pull_requests: pulls, visibility } = conversation;
  const isShared = visibility === 'organization';
  const { selected_repository: repository, selected_branch: base } = conversation;
  const download = `${PATH_PREFIX}/api/v1/app-conversations/${id}/download`;
  const place = useRef<HTMLSpanElement>(null);
  const [asked, ask] = useState<'rename' | 'delete' | null>(null);
  const [, navigate] = useLocation();
  const fork = () => {
    // The host knows the conversation's own branch once it has a pull request.
    const from = pulls.length > 0 ? branch : base;
    const draft: Draft = { message, repository: repository ?? '', branch: from ?? '' };
    navigate('/conversations', { state: { draft } });
  };
  const remove = useAction(async () => {
    await bodyOf(api.DELETE('/api/v1/app-conversations/{id}', at(id)));
    navigate('/conversations');
  });
  const close = () => ask(null);
  const share = useAction(async () => {
    const body = { visibility: isShared ? 'private' : 'organization' } as const;
    await bodyOf(api.PATCH('/api/v1/app-conversations/{id}', { ...at(id), body }));
    tell(isShared ? 'It is yours alone again' : 'All of your organization may read it now', title ?? '');
  });
  const rename = async (field: Fields) => {
    await bodyOf(api.PATCH('/api/v1/app-conversations/{id}', { ...at(id), body: { title: field('title') } }));
    close();
  };
  const removal = <Button look="danger" isBusy={remove.isPending} onClick={() => remove.mutate()} text="Delete" />;
  return (
    <>
      <Menu.Root>
        <Menu.Trigger className="button plain">More</Menu.Trigger>
        <Menu.Portal container={place}>
          <Menu.Positioner className="above" positionMethod="fixed" sideOffset={4} align="end">
            <Menu.Popup className="menu">
              <Item text="Rename" onClick={() => ask('rename')} />
              <Menu.LinkItem className="choice" href={download} closeOnClick download children="Download" />
              <Item text="Fork" onClick={fork} />
              <Item text={isShared ? 'Stop sharing' : 'Share'} onClick={() => share.mutate()} />
              {CAN_COPY && <Item text="Copy link" onClick={() => void copyLink()} />}
              <Item text="Delete" onClick={() => ask('delete')} />
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
      <span ref={place} />
      <Modal title="Rename the conversation" isOpen={asked === 'rename'} onClose={close} leave="Cancel">
        <Form name="Rename" submit="Rename" keeps onSubmit={rename}>
          <TextField label="Title" required maxLength={200} autoFocus defaultValue={title ?? ''} />
        </Form>
      </Modal>
      <Modal
        title="Delete the conversation?"
        text={DELETED}
        isOpen={asked === 'delete'}
        onClose={close}
        leave="Cancel"
        button={removal}
      />
    </>
  );
}

function Item({ text, onClick }: { text: string; onClick: () => void }) {
  return <Menu.Item className="choice" onClick={onClick} children={text} />;
}
