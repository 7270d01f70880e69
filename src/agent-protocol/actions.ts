/** One entry of the agent's own task list. */
export interface TaskItem {
  title: string;
  notes: string;
  status: 'todo' | 'in_progress' | 'done';
}

export interface TerminalAction {
  kind: 'TerminalAction';
  command: string;
  /** Input for the program that is running, not a new command. */
  is_input: boolean;
  /** Seconds. */
  timeout?: number | null;
  /** Starts a fresh shell. */
  reset: boolean;
}

export type FileEditorCommand = 'view' | 'create' | 'str_replace' | 'insert' | 'undo_edit';

export interface FileEditorAction {
  kind: 'FileEditorAction';
  command: FileEditorCommand;
  path: string;
  file_text?: string | null;
  old_str?: string | null;
  new_str?: string | null;
  insert_line?: number | null;
  view_range?: number[] | null;
}

export interface TaskTrackerAction {
  kind: 'TaskTrackerAction';
  command: 'view' | 'plan';
  task_list: TaskItem[];
}

export interface FinishAction {
  kind: 'FinishAction';
  message: string;
}

export interface ThinkAction {
  kind: 'ThinkAction';
  thought: string;
}

/** A call of a tool server's tool, and of our own `web_search` and `create_pull_request`: the schemas know no nearer kind. */
export interface MCPToolAction {
  kind: 'MCPToolAction';
  data: Record<string, unknown>;
}

/** What a tool was asked to do. */
export type Action =
  TerminalAction | FileEditorAction | TaskTrackerAction | FinishAction | ThinkAction | MCPToolAction;
