import { Dialog } from '@base-ui/react/dialog';
import { type ReactNode, useState } from 'react';
import { Button } from './blocks.js';
import type { Action } from './form.js';

type ModalProps = { title: string; isOpen: boolean; onClose: () => void; children: ReactNode };

export function Modal({ title, isOpen, onClose, children }: ModalProps) {
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
          {children}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** A secret that the service tells only once: what shows it, and the dialog. */
export function useSecretOnce(title: string, text: string) {
  const [secret, show] = useState<string | null>(null);
  const close = () => show(null);
  const dialog = (
    <Modal title={title} isOpen={secret !== null} onClose={close}>
      <p>{text}</p>
      <code className="secret">{secret}</code>
      <div className="actions">
        <Button look="primary" onClick={() => void navigator.clipboard.writeText(secret ?? '')} text="Copy" />
        <Button onClick={close} text="Done" />
      </div>
    </Modal>
  );
  return [dialog, show] as const;
}

type ConfirmedProps<T> = { name: string; of: string; text: string; action: Action<T>; input: T };

/** For what cannot be undone. Many buttons have the same name, so that each says what it acts on. */
export function Confirmed<T>({ name, of, text, action, input }: ConfirmedProps<T>) {
  const [isAsking, setAsking] = useState(false);
  const isBusy = action.isPending && action.variables === input;
  const confirm = () => {
    setAsking(false);
    action.mutate(input);
  };
  return (
    <>
      <Button look="link" isBusy={isBusy} title={`${name} ${of}`} onClick={() => setAsking(true)} text={name} />
      <Modal title={`${name} ${of}?`} isOpen={isAsking} onClose={() => setAsking(false)}>
        <p>{text}</p>
        <div className="actions">
          <Button look="danger" onClick={confirm} text={name} />
          <Button onClick={() => setAsking(false)} text="Cancel" />
        </div>
      </Modal>
    </>
  );
}
