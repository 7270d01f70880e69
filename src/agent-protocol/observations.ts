import type { FileEditorCommand, TaskItem } from './actions.js';
import type { Content } from './content.js';

/** What the shell knew after a command; -1 means "not known". */
export interface CommandMetadata {
  exit_code: number;
  pid: number;
  username?: string | null;
  hostname?: string | null;
  working_dir?: string | null;
  py_interpreter_path?: string | null;
  prefix: string;
  suffix: string;
}

export interface TerminalObservation {
  kind: 'TerminalObservation';
  content: Content[];
  is_error: boolean;
  command: string | null;
  exit_code?: number | null;
  /** The command still ran when its time was over. */
  timeout: boolean;
  metadata: CommandMetadata;
  full_output_save_dir?: string | null;
}

export interface FileEditorObservation {
  kind: 'FileEditorObservation';
  content: Content[];
  is_error: boolean;
  command: FileEditorCommand;
  path?: string | null;
  prev_exist: boolean;
  old_content?: string | null;
  new_content?: string | null;
}

export interface TaskTrackerObservation {
  kind: 'TaskTrackerObservation';
  content: Content[];
  is_error: boolean;
  command: 'view' | 'plan';
  task_list: TaskItem[];
}

export interface FinishObservation {
  kind: 'FinishObservation';
  content: Content[];
  is_error: boolean;
}

export interface ThinkObservation {
  kind: 'ThinkObservation';
  content: Content[];
  is_error: boolean;
}

/** Answer to an `MCPToolAction`. */
export interface MCPToolObservation {
  kind: 'MCPToolObservation';
  content: Content[];
  is_error: boolean;
  tool_name: string;
}

/** What a tool answered. */
export type Observation =
  | TerminalObservation
  | FileEditorObservation
  | TaskTrackerObservation
  | FinishObservation
  | ThinkObservation
  | MCPToolObservation;
