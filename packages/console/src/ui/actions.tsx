import { Dialog } from '@base-ui/react/dialog';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ComponentProps, type ReactNode, useEffect, useState } from 'react';
import { askAgain } from '../api/client.js';
import { Button } from './blocks.js';

/** Asks for all that is shown again; not for files, which would resume a sandbox that was just stopped. */
export function useRefresh() {
  const cache = useQueryClient();
  return () => askAgain(cache, { predicate: ({ queryKey: [name] }) => name !== 'files' });
}

/** Something that is done, and may change what is shown. A failure is said in a notice. */
export function useAction<T = void>(act: (input: T) => Promise<unknown>) {
  return useMutation({ mutationFn: act, onSettled: useRefresh() });
}

type ActionProps = { act: () => Promise<unknown> };

/** A button that does it, and is busy until it is done. */
export function ActionButton({ act, ...rest }: ActionProps & ComponentProps<typeof Button>) {
  const action = useAction(act);
  return <Button {...rest} isBusy={action.isPending} onClick={() => action.mutate()} />;
}

interface ConfirmedProps extends ActionProps {
  name: string;
  of: string;
  text: string;
  /** What more there is to know, and to choose. */
  children?: ReactNode;
  /** Whether all that has to be given is there. */
  isReady?: boolean;
  /** Before the dialog opens. */
  onAsk?: () => void;
}

/** Confirms what cannot be undone. Many buttons have the same name, so the title says what each one acts on. */
export function Confirmed({ name, of, text, act, children, isReady = true, onAsk }: ConfirmedProps) {
  const [isAsking, setAsking] = useState(false);
  const action = useAction(act);
  const confirm = () => {
    setAsking(false);
    action.mutate();
  };
  const ask = () => {
    onAsk?.();
    setAsking(true);
  };
  const title = `${name} ${of}`;
  const button = <Button look="danger" disabled={!isReady} onClick={confirm} text={name} />;
  const close = () => setAsking(false);
  return (
    <>
      <Button look="link" isBusy={action.isPending} title={title} onClick={ask} text={name} />
      <Modal title={`${title}?`} text={text} isOpen={isAsking} onClose={close} leave="Cancel" button={button}>
        {children}
      </Modal>
    </>
  );
}

interface ModalProps {
  title: string;
  text?: string;
  isOpen: boolean;
  onClose: () => void;
  /** Text of the button that only closes it. */
  leave: string;
  /** Shown beside that button. */
  button?: ReactNode;
  children?: ReactNode;
}

export function Modal({ title, text, isOpen, onClose, leave, button, children }: ModalProps) {
  return (
    <Dialog.Root open={isOpen} onOpenChange={(open) => (open ? undefined : onClose())}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="modal">
          <div className="modal-head">
            <Dialog.Title className="modal-title">{title}</Dialog.Title>
            <Dialog.Close className="icon-button" aria-label="Close">
              ×
            </Dialog.Close>
          </div>
          {text !== undefined && <p>{text}</p>}
          {children}
          <div className="actions">
            {button}
            <Button onClick={onClose} text={leave} />
          </div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** Browsers have no clipboard for pages by http, but for those of their own machine. */
export const CAN_COPY = 'clipboard' in navigator;

/** A secret that the service tells only once: what shows it, and the dialog. */
export function useSecretOnce(title: string, text: string) {
  const [secret, show] = useState<string | null>(null);
  const [copied, setCopied] = useState<string | null>(null);
  const copy = async () => {
    await navigator.clipboard.writeText(secret ?? '');
    setCopied(secret);
  };
  const copyText = secret !== null && copied === secret ? 'Copied' : 'Copy';
  const button = CAN_COPY && <Button look="primary" onClick={() => void copy()} text={copyText} />;
  const dialog = (
    <Modal title={title} text={text} isOpen={secret !== null} onClose={() => show(null)} leave="Done" button={button}>
      <code className="secret">{secret}</code>
    </Modal>
  );
  return [dialog, show] as const;
}

type Notice = { at: number; kind: 'done' | 'error'; title: string; text: string };

const SHOWN_MS = 8_000;

let show = (_notice: Notice): void => undefined;

/** Says in a corner, for some seconds, what has been done or has failed. */
export function tell(title: string, text: string, kind: Notice['kind'] = 'done'): void {
  show({ at: performance.now(), kind, title, text });
}

/** The region is always there: screen readers hear only what is added to one that they know. */
export function Notices() {
  const [notices, setNotices] = useState<readonly Notice[]>([]);
  useEffect(() => {
    show = (notice) => {
      setNotices((before) => [...before.slice(-2), notice]);
      setTimeout(() => setNotices((before) => before.filter((shown) => shown !== notice)), SHOWN_MS);
    };
  }, []);
  return (
    <div className="notices" role="status">
      {notices.map(({ at, kind, title, text }) => (
        <div key={at} className={`notice ${kind}`}>
          <p className="notice-title">{title}</p>
          <p>{text}</p>
        </div>
      ))}
    </div>
  );
}
